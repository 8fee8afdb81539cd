#!/bin/sh
# Makes the passwords and keys of ../compose.yaml in secrets/, which this machine alone has. What is there stays.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# The users inside the containers read them; nobody else gets into the folder.
chmod 700 secrets
umask 022

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
make() { [ -s "secrets/$1" ] || printf '%s' "$2" >"secrets/$1"; }

for name in admin_key bucket_access_key bucket_secret_key key postgres_password valkey_password; do
  make "$name" "$(random)"
done
make pepper "$(head -c 32 /dev/urandom | base64)"
make webhook_secret "whsec_$(head -c 32 /dev/urandom | base64)"
# In the network of the containers, which no other machine sees.
make store_url "postgres://gatewright:$(cat secrets/postgres_password)@postgres/gatewright?sslmode=disable"
make counters_url "redis://:$(cat secrets/valkey_password)@valkey:6379"
make s3_identities "{\"identities\": [{\"name\": \"gatewright\", \"actions\": [\"Admin\"], \"credentials\": [
  {\"accessKey\": \"$(cat secrets/bucket_access_key)\", \"secretKey\": \"$(cat secrets/bucket_secret_key)\"}]}]}"
