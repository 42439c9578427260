# Apache with a program that keeps the size of its store: mod_cache_disk knows no limit. The program
# can look once a minute by itself; here it is called every five seconds, and what it costs is
# counted with the server.
while sleep 5; do htcacheclean -p @DIR@/cache -l @CACHE_MIB@M; done &
exec apache2 -D FOREGROUND -f @DIR@/apache.conf
