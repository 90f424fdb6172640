package proxytest

import (
	"testing"
	"time"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
)

// MustHost parses a pattern for hosts.
func MustHost(t *testing.T, pattern string) glob.Glob {
	t.Helper()
	g, err := glob.Host(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// PassThrough makes a gate pass all TLS through.
func PassThrough(o *proxy.Options) { o.Settings.Passthrough = func(string) bool { return true } }

// Short is a time-out that a test waits for.
const Short = 200 * time.Millisecond

// IdleAfter sets the times for which a client and an origin may send and read nothing.
func IdleAfter(d time.Duration) func(*proxy.Options) {
	return func(o *proxy.Options) { o.Limits.IdleTimeout, o.Silence = d, d }
}

// AllowHost adds an override that allows all of a host, so that no robots.txt is fetched.
func AllowHost(t *testing.T, name string) func(*policy.Config) {
	g := MustHost(t, name)
	return func(c *policy.Config) {
		c.Overrides = append(c.Overrides, policy.Override{Hosts: []glob.Glob{g}, Action: policy.Allow, Reason: "a test"})
	}
}
