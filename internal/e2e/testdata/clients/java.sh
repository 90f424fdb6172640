#!/bin/sh
# Gets a URL with Java: sh java.sh CLASS URL. Java reads none of the variables, so
# they are given to it as a user would; without NODE_EXTRA_CA_CERTS it trusts what
# it always does.
here=$(dirname "$0")
address=${https_proxy#http://}
host=${address%:*}
port=${address##*:}
trust=
if [ -n "$NODE_EXTRA_CA_CERTS" ]; then
	[ -f "$HOME/trust.p12" ] || keytool -importcert -noprompt -alias robotsgate -file "$NODE_EXTRA_CA_CERTS" -keystore "$HOME/trust.p12" -storepass changeit 2>&1 || exit
	trust="-Djavax.net.ssl.trustStore=$HOME/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"
fi
exec java -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
	-Dhttp.proxyHost="$host" -Dhttp.proxyPort="$port" -Dhttps.proxyHost="$host" -Dhttps.proxyPort="$port" \
	$trust "$here/$1.java" "$2"
