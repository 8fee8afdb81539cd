-- Judges one request of a key, and counts it if it is within the limits.
-- KEYS: when the bucket of requests is full, when that of tokens is, the places that are taken.
-- ARGV: the limits of requests and tokens a minute and of requests at once (0: none); the time until each bucket is full, as
-- the gateway knows it, and 1 if it counted without this server; tokens taken since; the place; its lease; places now free.
-- Times are in microseconds, by the clock of this server. Returns 0 (granted), 1 (requests), 2 (tokens) or 3 (at once); the
-- time until there is room; the time until each bucket is full.
local MINUTE, DEBT = 60000000, 3600000000
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

local requests, tokens = 0, 0
if most_tokens > 0 then
  tokens = used(KEYS[2], cost(tonumber(ARGV[7]), most_tokens), tonumber(ARGV[5]))
  keep(KEYS[2], tokens)
end
if most_requests > 0 then
  requests = used(KEYS[1], 0, tonumber(ARGV[4]))
  keep(KEYS[1], requests)
end
for at = 10, #ARGV do redis.call('ZREM', KEYS[3], ARGV[at]) end

if most_tokens > 0 then
  local wait = tokens + cost(1, most_tokens) - MINUTE
  if wait > 0 then return {2, wait, requests, tokens} end
end
if most_places > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now))
  if redis.call('ZCARD', KEYS[3]) >= most_places then return {3, 0, requests, tokens} end
end
if most_requests > 0 then
  local after = requests + cost(1, most_requests)
  if after > MINUTE then return {1, after - MINUTE, requests, tokens} end
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
return {0, 0, requests, tokens}
