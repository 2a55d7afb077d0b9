-- Asks Gatehouse who sends a request, and tells the application. Needs HAProxy 2.5 or newer.

-- Narrow it with &role=… or &scope=… here.
local URL = "http://127.0.0.1:3000/forward-auth?redirect=header"
local IDENTITY = { "remote-user", "remote-email", "remote-name", "remote-groups" }
local PASSED = { "accept", "authorization", "cookie", "sec-fetch-mode", "upgrade" }

local function all_values(headers, name)
  local values = {}
  local index = 0
  while headers[name] ~= nil and headers[name][index] ~= nil do
    table.insert(values, headers[name][index])
    index = index + 1
  end
  return values
end

core.register_action("gatehouse", { "http-req" }, function(txn)
  local headers = txn.http:req_get_headers()
  local scheme = txn.sf:ssl_fc() == "1" and "https" or "http"
  local asked = { ["x-original-url"] = { scheme .. "://" .. txn.sf:req_hdr("host") .. txn.sf:pathq() } }
  for _, name in ipairs(PASSED) do
    local values = all_values(headers, name)
    if #values > 0 then asked[name] = values end
  end

  local response = core.httpclient():get({ url = URL, headers = asked, timeout = 5000 })
  txn:set_var("txn.status", response.status or 503)
  if response.status == 401 and response.headers["location"] ~= nil then
    txn:set_var("txn.sign_in", response.headers["location"][0])
  end
  if response.status ~= 200 then return end

  for _, name in ipairs(IDENTITY) do
    local value = response.headers[name] and response.headers[name][0] or ""
    txn.http:req_set_header(name, value)
  end
  txn.http:req_del_header("authorization")
  -- Our cookie is not the application's.
  local cookies = "; " .. table.concat(all_values(headers, "cookie"), "; ")
  cookies = cookies:gsub("; *ACCESS_TOKEN=[^;]*", ""):gsub("^; *", "")
  txn.http:req_del_header("cookie")
  if cookies ~= "" then txn.http:req_set_header("cookie", cookies) end
end)
