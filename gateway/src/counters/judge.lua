-- Judges one request of a key, and counts it if it is within the limits.
-- KEYS: when the bucket of requests is full, when that of tokens is, the places that are taken; of a key with a budget also what
-- was spent on the day, and in the month.
-- ARGV: the limits of requests and tokens a minute and of requests at once (0: none); the time until each bucket is full, as
-- the gateway knows it, and 1 if it counted without this server; tokens taken since; the place; its lease; of a key with a
-- budget the budgets of the day in tokens and money and those of the month (0: none), what was spent as the gateway knows it,
-- in the same order, and the tokens and the money spent since; places now free.
-- Times are in microseconds, by the clock of this server. Returns 0 (granted), 1 (requests), 2 (tokens), 3 (at once) or
-- 4 to 7 (the budgets, in their order); the time until there is room; the time until each bucket is full; what was spent, in the
-- order of the budgets.
local MINUTE, DEBT = 60000000, 3600000000
-- Seconds after which everybody knows by the store what was spent; and the largest sum.
local KNOWN, MOST = 3600, 9e18
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local most_requests, most_tokens, most_places = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

-- A bucket that this server does not know may be one that it has lost. What the gateway has seen holds `more` already.
local function used(key, more, seen)
  local full = tonumber(redis.call('GET', key) or '')
  local used = math.max((full or now) - now, 0) + more
  if not full or ARGV[6] == '1' then used = math.max(used, seen) end
  return math.min(used, MINUTE + DEBT)
end

local function keep(key, used)
  if used > 0 then redis.call('SET', key, string.format('%.0f', now + used), 'PX', math.ceil(used / 1000)) end
end

local function cost(count, limit)
  return math.floor(count * MINUTE / limit)
end

-- What was spent in a period. As above, a sum that this server does not know may be one that it has lost, and what the gateway
-- has seen holds what it spent since.
local function spent(key, seen)
  local kept, sums, has_changed = redis.call('HMGET', key, 'tokens', 'money'), {}, false
  for i = 1, 2 do
    local known = tonumber(kept[i] or '')
    local sum = (known or 0) + tonumber(ARGV[17 + i])
    if not known or ARGV[6] == '1' then sum = math.max(sum, tonumber(ARGV[seen + i])) end
    sums[i] = math.min(sum, MOST)
    has_changed = has_changed or sums[i] ~= known
  end
  if has_changed then
    redis.call('HSET', key, 'tokens', string.format('%.0f', sums[1]), 'money', string.format('%.0f', sums[2]))
    redis.call('EXPIRE', key, KNOWN)
  end
  return sums
end

local has_budget = #KEYS == 5
local day, month = {0, 0}, {0, 0}
if has_budget then day, month = spent(KEYS[4], 13), spent(KEYS[5], 15) end

local requests, tokens = 0, 0
if most_tokens > 0 then
  tokens = used(KEYS[2], cost(tonumber(ARGV[7]), most_tokens), tonumber(ARGV[5]))
  keep(KEYS[2], tokens)
end
if most_requests > 0 then
  requests = used(KEYS[1], 0, tonumber(ARGV[4]))
  keep(KEYS[1], requests)
end
for at = has_budget and 20 or 10, #ARGV do redis.call('ZREM', KEYS[3], ARGV[at]) end

local function verdict(what, wait)
  return {what, wait, requests, tokens, day[1], day[2], month[1], month[2]}
end

if has_budget then
  local sums = {day[1], day[2], month[1], month[2]}
  for i = 1, 4 do
    local budget = tonumber(ARGV[9 + i])
    if budget > 0 and sums[i] >= budget then return verdict(3 + i, 0) end
  end
end
if most_tokens > 0 then
  local wait = tokens + cost(1, most_tokens) - MINUTE
  if wait > 0 then return verdict(2, wait) end
end
if most_places > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now))
  if redis.call('ZCARD', KEYS[3]) >= most_places then return verdict(3, 0) end
end
if most_requests > 0 then
  local after = requests + cost(1, most_requests)
  if after > MINUTE then return verdict(1, after - MINUTE) end
  requests = after
  keep(KEYS[1], requests)
end
if most_places > 0 then
  local lease = tonumber(ARGV[9])
  redis.call('ZADD', KEYS[3], string.format('%.0f', now + lease), ARGV[8])
  -- A gateway with a short lease does not end the places of one with a long lease.
  lease = math.ceil(lease / 1000)
  if redis.call('PTTL', KEYS[3]) < lease then redis.call('PEXPIRE', KEYS[3], lease) end
end
return verdict(0, 0)
