package proxytest

import (
	"encoding/base64"
	"net/netip"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// The passwords of [Team].
const (
	NewsPassword = "paper-boy 1"
	ShopPassword = "shop-keeper 2"
	LastPassword = "latecomer 3"
)

// Basic returns the credentials of a login.
func Basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// Hashes returns the bcrypt hashes of the passwords.
var Hashes = sync.OnceValue(func() map[string][]byte {
	m := map[string][]byte{}
	for _, password := range []string{NewsPassword, ShopPassword, LastPassword} {
		m[password], _ = bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	}
	return m
})

// LoginFor returns a crawler's login with one of the passwords.
func LoginFor(user, password string) policy.Login {
	return policy.Login{User: user, Hash: string(Hashes()[password])}
}

// Team returns a change of the configuration: three crawlers that have logins. news and shop share a user
// name; shop is also identified by its User-Agent, and elsewhere by its address.
func Team(refuse bool) func(*policy.Config) {
	return func(c *policy.Config) {
		c.Crawlers.Known = []*policy.Crawler{
			{Name: "news", Login: LoginFor("team", NewsPassword), Mode: policy.Enforce, DenyStatus: 403},
			{Name: "shop", Login: LoginFor("team", ShopPassword), UserAgents: []glob.Glob{glob.Text("*bot*")}, Mode: policy.Enforce, DenyStatus: 403},
			{Name: "elsewhere", Login: LoginFor("last", LastPassword), Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Mode: policy.Enforce, DenyStatus: 403},
		}
		c.Crawlers.RefuseUnknown = refuse
	}
}
