package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/crypto/bcrypt"

	"robotsgate/internal/field"
	"robotsgate/policy/glob"
)

var productToken = regexp.MustCompile(`\A[A-Za-z0-9_-]+\z`)

// CheckTokens says which text of a command line or a query can't be a product token.
func CheckTokens(texts ...string) error {
	for _, text := range texts {
		switch {
		case text == "":
			return errors.New("is empty: leave it out")
		case !productToken.MatchString(text):
			return fmt.Errorf("%.80q is not a product token: only letters, digits, _ and - are allowed", text)
		}
	}
	return nil
}

// Check reports mistakes. The caller checks that the name is unique.
func (k *Crawler) Check(m *field.Mistakes) {
	m.Require(k.Name != "", "name", "is missing: every crawler needs one")
	k.Login.Check(m.In("login"))
	for j, token := range k.Tokens {
		at := fmt.Sprintf("product_tokens[%d]", j)
		m.Require(token != "*", at, "* is what every crawler falls back to: leave it out")
		m.Require(productToken.MatchString(token), at, "expected letters, digits, _ and - only, such as ExampleBot, got %.80q", token)
	}
	for j, g := range k.UserAgents {
		matches := g.String() != "" && strings.TrimSpace(g.String()) == g.String() && !strings.ContainsFunc(g.String(), unicode.IsControl)
		m.Require(matches, fmt.Sprintf("user_agents[%d]", j), "%.80q can't match: a header's value is not empty, and has no control characters and no white space at its ends", g)
	}
	m.Refuse("user_agent", CheckUserAgent(k.UserAgent))
}

// maxUserAgent bounds a User-Agent, in bytes.
const maxUserAgent = 1024

// CheckUserAgent says why a text can't be sent as User-Agent. An empty one is not sent.
func CheckUserAgent(text string) error {
	outside := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.TrimSpace(text) != text || len(text) > maxUserAgent || strings.ContainsFunc(text, outside) {
		return fmt.Errorf("expected printable ASCII of at most %d bytes, without a space at its ends, such as ExampleBot/1.0 (+https://example.com/bot), got %.80q", maxUserAgent, text)
	}
	return nil
}

// namedIn reports whether one of the configured product tokens is in a User-Agent.
func (k *Crawler) namedIn(userAgent string) bool {
	agent := strings.ToLower(userAgent)
	return slices.ContainsFunc(k.Tokens, func(token string) bool { return strings.Contains(agent, strings.ToLower(token)) })
}

// Warn reports what is allowed but is probably not intended.
func (k *Crawler) Warn(m *field.Mistakes) {
	for j, token := range k.Tokens {
		m.Require(!strings.ContainsAny(token, "0123456789"), fmt.Sprintf("product_tokens[%d]", j),
			"%s has a digit, which product tokens of RFC 9309, section 2.2.1 have not: other readers of robots.txt may cut it there", token)
	}
	m.Require(k.UserAgent == "" || len(k.Tokens) == 0 || k.namedIn(k.UserAgent), "user_agent",
		"has none of the product_tokens: sites that name %s in robots.txt can't recognize the crawler (RFC 9309, 2.2.1)", strings.Join(k.Tokens, ", "))
}

// Covers reports whether k certainly matches every client that other matches.
func (k *Crawler) Covers(other *Crawler) bool {
	anyAgent := slices.ContainsFunc(k.UserAgents, func(g glob.Glob) bool { return g.String() == "*" })
	return (!k.Login.Required() || k.Login == other.Login) &&
		coversEach(k.Sources, other.Sources, func(wide, p netip.Prefix) bool { return wide.Bits() <= p.Bits() && wide.Contains(p.Addr()) }) &&
		(anyAgent || coversEach(k.UserAgents, other.UserAgents, func(a, b glob.Glob) bool { return strings.EqualFold(a.String(), b.String()) }))
}

// coversEach reports whether for each of others an item of list covers it. No items stand for
// all clients.
func coversEach[T any](list, others []T, covers func(item, other T) bool) bool {
	missed := func(other T) bool {
		return !slices.ContainsFunc(list, func(item T) bool { return covers(item, other) })
	}
	return len(list) == 0 || len(others) > 0 && !slices.ContainsFunc(others, missed)
}

// Check reports mistakes. No message repeats a password. A login that is given must not be empty: an unset variable
// would make the crawler match every client. The default may be written out, with both values empty.
func (l Login) Check(m *field.Mistakes) {
	if !m.Given("") || !l.Required() && m.Given("user") && m.Given("password_bcrypt") {
		return
	}
	if !l.Required() && !m.Bad("user") && !m.Bad("password_bcrypt") {
		m.Add("", "is given, but empty: write user and password_bcrypt, or leave login out to ask for none")
		return
	}
	m.Require(l.User != "", "user", "is missing: a password_bcrypt needs the user that it is for")
	m.Require(!strings.Contains(l.User, ":"), "user", "has a colon, which ends the user name in a login (RFC 7617): leave it out, and what follows it")
	m.Require(!strings.ContainsFunc(l.User, unicode.IsControl), "user", "has a control character, which no login can have (RFC 7617)")
	m.Require(l.Hash != "", "password_bcrypt", "is missing: %s", howToHash)
	m.Refuse("password_bcrypt", checkHash(l.Hash))
}

// maxBcryptCost bounds the time that a login takes. Each step doubles it; 14 takes about a second of a processor.
const maxBcryptCost = 14

const howToHash = "make one with: robotsgate hash-password"

// checkHash says why text can't be the hash of a password.
func checkHash(text string) error {
	const length = 60 // version, cost, 22 characters of salt and 31 of the hash itself
	cost, err := bcrypt.Cost([]byte(text))
	if err != nil || len(text) != length {
		return errors.New("is no bcrypt hash, such as $2y$10$ with 53 characters behind it: " + howToHash)
	}
	if cost > maxBcryptCost {
		return fmt.Errorf("has cost %d, which takes too long for every login: at most %d; %s", cost, maxBcryptCost, howToHash)
	}
	return nil
}
