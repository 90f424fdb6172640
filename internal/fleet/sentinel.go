package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// sentinelInterval is how often the Sentinels are asked whether the primary is still the same.
const sentinelInterval = 5 * time.Second

// primary asks the Sentinels for the address of the primary. The first answer counts.
//
// rueidis can do this too, but its code ends the process at answers that are not well-formed.
func (d *dialer) primary(ctx context.Context, a address) (string, error) {
	var problems []string
	for _, host := range a.hosts {
		primary, err := d.askSentinel(ctx, host, a.sentinel, address{})
		if err != nil && a.password != "" && strings.HasPrefix(err.Error(), "NOAUTH") {
			primary, err = d.askSentinel(ctx, host, a.sentinel, a)
		}
		if err == nil {
			return primary, nil
		}
		problems = append(problems, fmt.Sprintf("the Sentinel %s: %v", host, err))
	}
	return "", errors.New(strings.Join(problems, "; "))
}

// askSentinel asks one Sentinel, with the user and the password of an address.
func (d *dialer) askSentinel(ctx context.Context, host, name string, user address) (primary string, err error) {
	own := &dialer{tls: d.tls, timeout: d.timeout, conns: map[*trackedConn]bool{}}
	ctx, cancel := context.WithTimeout(ctx, 2*d.timeout)
	defer cancel()
	defer context.AfterFunc(ctx, own.close)()
	client, err := own.connect(address{hosts: []string{host}, user: user.user, password: user.password}, true)
	if err != nil {
		own.close()
		return "", serverError(err)
	}
	defer client.Close()
	defer own.close()
	command := client.B().Arbitrary("SENTINEL", "GET-MASTER-ADDR-BY-NAME").Args(name).Build()
	answer, err := client.Do(ctx, command).AsStrSlice()
	if rueidis.IsRedisNil(err) {
		return "", fmt.Errorf("it watches no server with the name %q", name)
	}
	if err != nil {
		return "", serverError(err)
	}
	if len(answer) != 2 {
		return "", errAnswer
	}
	return hostPort(net.JoinHostPort(answer[0], answer[1]), "")
}

// watchPrimary closes all connections when the Sentinels have another primary. A primary that was replaced
// may still take writes for a while, which are lost.
func (d *dialer) watchPrimary(ctx context.Context, a address, primary string) {
	ticker := time.NewTicker(sentinelInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now, err := d.primary(ctx, a); err == nil && now != primary {
			d.close()
			return
		}
	}
}
