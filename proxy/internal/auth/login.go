// Package auth verifies the logins that clients send to the proxy.
package auth

import (
	"encoding/base64"
	"strings"
)

// A Login is what a client sends in Proxy-Authorization. It is never printed.
type Login struct {
	User, Password string
	Unreadable     bool // something was sent that is no login
}

// maxPassword is what bcrypt reads of a password, in bytes. A longer one is refused,
// since anything might follow there.
const maxPassword = 72

// Parse reads credentials by the Basic scheme (RFC 7617, 2).
func Parse(value string) *Login {
	scheme, rest, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return &Login{Unreadable: true}
	}
	// RFC 9110, 11.2 has padding, which not every client sends.
	text, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(strings.TrimSpace(rest), "="))
	user, password, ok := strings.Cut(string(text), ":")
	if err != nil || !ok || len(password) > maxPassword || strings.ContainsFunc(string(text), isControl) {
		return &Login{Unreadable: true}
	}
	return &Login{User: user, Password: password}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
