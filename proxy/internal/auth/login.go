// Package auth verifies the logins that clients send to the proxy (Basic authentication,
// RFC 7617). [Parse] reads a login, and a [Verifier] compares it with bcrypt hashes.
package auth

import (
	"encoding/base64"
	"strings"
)

// A Login is the content of Proxy-Authorization, or of a login in SOCKS. It must never be logged.
type Login struct {
	User, Password string
	Invalid        bool // something was sent that is not a login
}

// Empty reports whether the login has neither a user name nor a password. A nil login is not empty.
func (l *Login) Empty() bool { return l != nil && *l == Login{} }

// maxPassword is how much of a password bcrypt reads, in bytes. A longer password is invalid:
// any text behind that would match.
const maxPassword = 72

// Parse reads the lines of a request's Proxy-Authorization header. It returns nil if there
// are none.
func Parse(lines []string) *Login {
	if len(lines) == 0 {
		return nil
	}
	scheme, rest, _ := strings.Cut(lines[0], " ")
	if len(lines) > 1 || !strings.EqualFold(scheme, "Basic") {
		return &Login{Invalid: true}
	}
	// RFC 9110, section 11.2 has padding, but not all clients send it.
	text, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(strings.TrimSpace(rest), "="))
	user, password, ok := strings.Cut(string(text), ":")
	if err != nil || !ok {
		return &Login{Invalid: true}
	}
	return New(user, password)
}

// New returns a login. It is invalid if Basic authentication could not carry it, or bcrypt would not read all of it.
func New(user, password string) *Login {
	if len(password) > maxPassword || strings.ContainsFunc(user+password, isControl) || strings.Contains(user, ":") {
		return &Login{Invalid: true}
	}
	return &Login{User: user, Password: password}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
