-- Every request has a target of its own: PREFIX, a number from 1 on, and the query.
-- Arguments behind `--`: PREFIX QUERY. At the end the report of wrk-report.lua is printed.
dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "wrk-report.lua")

local prefix, query
local number = 0

function init(args)
   prefix, query = args[1], args[2]
end

function request()
   number = number + 1
   return wrk.format("GET", prefix .. number .. "?" .. query)
end
