package origin

import (
	"context"
	"errors"
	"fmt"
	"net"

	"robotsgate/policy"
)

// Dial opens a tunnel to host and port, if the egress rules permit it.
func (u *Transport) Dial(ctx context.Context, host, port string) (net.Conn, error) {
	if err := u.Check(host, port); err != nil {
		return nil, err
	}
	return u.dialOrigin(ctx, net.JoinHostPort(host, port))
}

// dialOrigin opens a connection to an origin, through the parent if there is one.
func (u *Transport) dialOrigin(ctx context.Context, address string) (net.Conn, error) {
	switch {
	case u.parent == nil:
		return u.dial(ctx, "tcp", address)
	case u.parent.Scheme == "socks5":
		return u.dialSocks(ctx, address)
	default:
		return u.dialConnect(ctx, address)
	}
}

// dial opens a connection to an origin, or to the parent if there is one.
func (u *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := u.descriptors.dial(func() (net.Conn, error) { return u.Dialer.DialContext(ctx, network, address) })
	if err != nil && u.parent != nil && ctx.Err() == nil && !errors.Is(err, policy.ErrExhausted) {
		return nil, fmt.Errorf("%w: %w", policy.ErrParent, err)
	}
	return conn, err
}
