# Squid with a store on disk: its directories are made first, which changes nothing where they are.
squid -z -N -f @DIR@/squid.conf && exec squid -N -f @DIR@/squid.conf
