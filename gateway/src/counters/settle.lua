-- Counts tokens of a key that were taken, frees places, and renews the leases of those that are taken.
-- KEYS: when the bucket of tokens is full, the places. ARGV: the limit of tokens a minute, the tokens, the lease in
-- microseconds, the number of places now free, those, and the places that are taken.
local MINUTE, DEBT = 60000000, 3600000000
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local limit, tokens, lease, free = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

if limit > 0 and tokens > 0 then
  local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '') or now, now)
  local used = math.min(full - now + math.floor(tokens * MINUTE / limit), MINUTE + DEBT)
  if used > 0 then
    redis.call('SET', KEYS[1], string.format('%.0f', now + used), 'PX', math.ceil(used / 1000))
  end
end
for at = 5, 4 + free do redis.call('ZREM', KEYS[2], ARGV[at]) end
if #ARGV > 4 + free then
  local ends = string.format('%.0f', now + lease)
  for at = 5 + free, #ARGV do redis.call('ZADD', KEYS[2], ends, ARGV[at]) end
  -- A gateway with a short lease does not end the places of one with a long lease.
  lease = math.ceil(lease / 1000)
  if redis.call('PTTL', KEYS[2]) < lease then redis.call('PEXPIRE', KEYS[2], lease) end
end
return 1
