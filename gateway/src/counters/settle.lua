-- Counts tokens of a key that were taken and what was spent of its budgets, frees places, and renews the leases of those that are
-- taken.
-- KEYS: when the bucket of tokens is full, the places; where something was spent also what was spent on the day, and in the month.
-- ARGV: the limit of tokens a minute, the tokens, the lease in microseconds; where something was spent the tokens and the money of
-- the day as the gateway knows them, those of the month, and how much of each is new; the number of places now free, those, and
-- the places that are taken.
local MINUTE, DEBT = 60000000, 3600000000
-- Seconds after which everybody knows by the store what was spent; and the largest sum.
local KNOWN, MOST = 3600, 9e18
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local limit, tokens, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

-- A sum that this server does not know may be one that it has lost. What the gateway has seen holds what is new already.
local function spend(key, seen)
  local kept, sums = redis.call('HMGET', key, 'tokens', 'money'), {}
  for i = 1, 2 do
    local known = tonumber(kept[i] or '')
    local sum = known and known + tonumber(ARGV[7 + i]) or tonumber(ARGV[seen + i])
    sums[i] = string.format('%.0f', math.min(sum, MOST))
  end
  redis.call('HSET', key, 'tokens', sums[1], 'money', sums[2])
  redis.call('EXPIRE', key, KNOWN)
end

local at = 4
if #KEYS == 4 then
  spend(KEYS[3], 3)
  spend(KEYS[4], 5)
  at = 10
end
local free = tonumber(ARGV[at])

if limit > 0 and tokens > 0 then
  local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '') or now, now)
  local used = math.min(full - now + math.floor(tokens * MINUTE / limit), MINUTE + DEBT)
  if used > 0 then
    redis.call('SET', KEYS[1], string.format('%.0f', now + used), 'PX', math.ceil(used / 1000))
  end
end
for place = at + 1, at + free do redis.call('ZREM', KEYS[2], ARGV[place]) end
if #ARGV > at + free then
  local ends = string.format('%.0f', now + lease)
  for place = at + free + 1, #ARGV do redis.call('ZADD', KEYS[2], ends, ARGV[place]) end
  -- A gateway with a short lease does not end the places of one with a long lease.
  lease = math.ceil(lease / 1000)
  if redis.call('PTTL', KEYS[2]) < lease then redis.call('PEXPIRE', KEYS[2], lease) end
end
return 1
