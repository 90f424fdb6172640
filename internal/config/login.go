package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// Bounds on the cost of bcrypt. Each step doubles the time; 14 takes about a second of a
// processor for every login. 4 is bcrypt's minimum.
const (
	minBcryptCost = 4
	maxBcryptCost = 14
)

// bcryptHash is the form of a hash: version, cost, 22 characters of salt and 31 of the
// hash itself. Versions a, b and y are the same computation. Version x, and the first
// version, without a letter, come from programs that computed it wrongly.
var bcryptHash = regexp.MustCompile(`\A\$2[aby]\$([0-9]{2})\$([./A-Za-z0-9]{53})\z`)

const howToHash = "make one with: robotsgate hash-password"

// maxPassword is how much of a password bcrypt reads, in bytes.
const maxPassword = 72

// HashPassword returns the hash of a password for password_bcrypt. The error says why no client
// can log in with this password.
func HashPassword(password string) (string, error) {
	switch {
	case password == "":
		return "", errors.New("the password is empty")
	case len(password) > maxPassword:
		return "", fmt.Errorf("the password is longer than %d bytes, and bcrypt reads no further: choose a shorter one", maxPassword)
	case strings.ContainsFunc(password, isControl):
		return "", errors.New("the password has a control character, which no login can have (RFC 7617)")
	}
	// Every step of the cost doubles the time that anyone can make the gate spend on a wrong password.
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	return string(hash), err
}

// checkLogin checks the login at path. No message repeats a password. A login that is
// given must not be empty: an unset variable would make the crawler match every client.
// The file itself may write out the default, with both values empty.
func (c *Config) checkLogin(l Login, path string) {
	s := &c.source
	if !s.Given(path) || l == (Login{}) && s.Given(path+".user") && s.Given(path+".password_bcrypt") {
		return
	}
	if l == (Login{}) && !s.Bad(path+".user") && !s.Bad(path+".password_bcrypt") {
		s.Add(path, "is given, but empty: write user and password_bcrypt, or leave login out to ask for none")
		return
	}
	user, password := path+".user", path+".password_bcrypt"
	s.Require(l.User != "", user, "is missing: a password_bcrypt needs the user that it is for")
	s.Require(!strings.Contains(l.User, ":"), user, "has a colon, which ends the user name in a login (RFC 7617): leave it out, and what follows it")
	s.Require(!strings.ContainsFunc(l.User, isControl), user, "has a control character, which no login can have (RFC 7617)")
	s.Require(l.PasswordBcrypt != "", password, "is missing: %s", howToHash)
	s.Refuse(password, checkHash(l.PasswordBcrypt))
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// checkHash says why text can't be the hash of a password.
func checkHash(text string) error {
	m := bcryptHash.FindStringSubmatch(text)
	if m == nil {
		if _, rest, ok := strings.Cut(text, ":"); ok && bcryptHash.MatchString(strings.TrimSpace(rest)) {
			return errors.New("has the user name in it: leave out everything up to the colon")
		}
		return errors.New("is no bcrypt hash, such as $2y$10$ with 53 characters behind it: " + howToHash)
	}
	// The last 2 of the last character's 6 bits are not part of the hash. bcrypt writes zeros.
	const alphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	cost, _ := strconv.Atoi(m[1])
	switch {
	case strings.IndexByte(alphabet, m[2][52])%4 != 0:
		return errors.New("is a bcrypt hash with a wrong character in it, which no password matches: copy it again")
	case cost > maxBcryptCost:
		return fmt.Errorf("has cost %s, which takes too long for every login: at most %d; %s", m[1], maxBcryptCost, howToHash)
	case cost < minBcryptCost:
		return fmt.Errorf("has cost %s, which bcrypt does not know: at least %d; %s", m[1], minBcryptCost, howToHash)
	}
	return nil
}
