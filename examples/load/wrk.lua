-- GET /account with all tokens in turn; each thread of wrk begins at another one.
local tokens = {}
local threads = 0
local last = 0

function setup(thread)
  thread:set('number', threads)
  threads = threads + 1
end

function init()
  for token in io.lines(os.getenv('TOKENS') or 'data/tokens.txt') do
    -- The lines of disabled accounts are empty.
    if token ~= '' then tokens[#tokens + 1] = token end
  end
  last = number * 7919
end

function request()
  last = last % #tokens + 1
  return wrk.format('GET', '/account', { Authorization = 'Bearer ' .. tokens[last] })
end

function done(summary)
  local errors = summary.errors
  print(string.format('%d responses with a status of 400 and above, %d connection errors, %d timeouts',
    errors.status, errors.connect + errors.read + errors.write, errors.timeout))
end
