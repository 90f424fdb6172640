//go:build linux && (amd64 || arm64)

package escapes

import (
	"crypto/tls"
	"net"
	"time"

	"robotsgate/internal/confine/attempts"
)

// tls connects to an address with a server name in the ClientHello, which may be empty, and asks for
// another host inside.
func (t *trial) tls(address, serverName, host string) error {
	raw, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(time.Second))
	conn := tls.Client(raw, &tls.Config{ServerName: serverName, InsecureSkipVerify: true})
	return attempts.Exchange(conn, "GET /"+t.Token()+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
}
