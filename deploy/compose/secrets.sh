#!/bin/sh
# Creates the passwords and keys for ../compose.yaml in secrets/, at random. Existing files are kept.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# The files are readable for the users inside the containers; on this machine, only the owner can enter the folder.
chmod 700 secrets
umask 022

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
make() { [ -s "secrets/$1" ] || printf '%s' "$2" >"secrets/$1"; }

for name in admin_key bucket_access_key bucket_secret_key key postgres_password valkey_password; do
  make "$name" "$(random)"
done
make pepper "$(head -c 32 /dev/urandom | base64)"
make webhook_secret "whsec_$(head -c 32 /dev/urandom | base64)"
# Without TLS: this traffic stays in the containers' network on this machine.
make store_url "postgres://gatewright:$(cat secrets/postgres_password)@postgres/gatewright?sslmode=disable"
make counters_url "redis://:$(cat secrets/valkey_password)@valkey:6379"
make s3_identities "{\"identities\": [{\"name\": \"gatewright\", \"actions\": [\"Admin\"], \"credentials\": [
  {\"accessKey\": \"$(cat secrets/bucket_access_key)\", \"secretKey\": \"$(cat secrets/bucket_secret_key)\"}]}]}"
