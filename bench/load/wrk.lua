-- Sends the requests of a file in rotation, from a random one on, and reports one line of JSON. The file is read before the load starts.
-- A fixed start would send the same requests in every round, so that a rotation over more tokens than the caches hold hits them.
local requests = {}
local last = 0

init = function()
  local file = io.open(os.getenv("REQUESTS"), "rb")
  for length in file:lines() do
    requests[#requests + 1] = file:read(tonumber(length))
  end
  file:close()
  math.randomseed(tonumber(os.getenv("SEED")))
  last = math.random(#requests) - 1
end

request = function()
  last = last % #requests + 1
  return requests[last]
end

done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50":%.3f,"p99":%.3f,"errors":%d,"refused":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status
  ))
end
