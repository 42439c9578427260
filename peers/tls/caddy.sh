# Makes the files that are asked for, and starts Caddy.
set -e
head -c 1024 /dev/zero >@DIR@/files/hit/1k
head -c 262144 /dev/zero >@DIR@/files/hit/256k
XDG_CONFIG_HOME=@DIR@/state XDG_DATA_HOME=@DIR@/state
export XDG_CONFIG_HOME XDG_DATA_HOME
exec caddy run --config @DIR@/Caddyfile --adapter caddyfile
