package cli

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"robotsgate/internal/clientenv"
	"robotsgate/internal/console"
	"robotsgate/internal/gate"
	"robotsgate/policy"
)

// proxyURL returns the URL of the gate for its clients, with a placeholder if each of them needs a
// login.
func proxyURL(address string, c *gate.Config) string {
	if gate.Crawlers(c).NeedLogin() {
		return clientenv.WithPlaceholder("http://" + address)
	}
	return "http://" + address
}

// proxyURL returns the URL for the variables, with the login that is asked for.
func (e *Env) proxyURL(s console.Streams, c *gate.Config) (string, error) {
	address, known := clientenv.Dialable(c.Listen), gate.Crawlers(c)
	switch {
	case e.Login != "":
		if strings.Contains(e.Login, ":") {
			return "", errors.New("--login: no user name has a colon: give the user alone, and the password when it is asked for")
		}
		password, err := readPassword(s, "Password: ")
		if err == nil && password == "" {
			err = errors.New("the password is empty")
		}
		u := url.URL{Scheme: "http", User: url.UserPassword(e.Login, password), Host: address}
		return u.String(), err
	case known.NeedLogin():
		s.Note("every client of this gate needs a login: write yours in place of USER:PASSWORD, or let robotsgate env --login USER ask for the password")
	case known.RefuseUnknown && slices.ContainsFunc(known.Known, func(k *policy.Crawler) bool { return k.Login.Required() }):
		s.Note("some clients of this gate need a login: robotsgate env --login USER asks for the password")
	}
	return proxyURL(address, c), nil
}
