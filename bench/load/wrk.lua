-- Asks with each of the tokens in turn, and reports as one line of JSON. Requests are made before the load starts: picking
-- one costs wrk nothing beside sending it.
local requests = {}
local last = 0

init = function(args)
  local file = io.open(os.getenv("TOKENS"))
  for token in file:lines() do
    requests[#requests + 1] = wrk.format("GET", nil, { ["Authorization"] = "Bearer " .. token })
  end
  file:close()
  if #requests == 0 then requests[1] = wrk.format("GET") end
end

request = function()
  last = last % #requests + 1
  return requests[last]
end

done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50":%.3f,"p99":%.3f,"errors":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
