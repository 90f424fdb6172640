package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/term"

	"robotsgate/internal/console"
)

// HashPassword prints the hash of a password, for password_bcrypt.
type HashPassword struct{}

// Run reads the password from the terminal, or from a line of standard input.
func (HashPassword) Run(s console.Streams) error {
	password, err := readPassword(s, "Password: ", "The same again: ")
	if err != nil {
		return err
	}
	hash, err := hashPassword(password)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, hash)
	return err
}

// maxPassword is how much of a password bcrypt reads, in bytes.
const maxPassword = 72

// hashPassword returns the hash of a password for password_bcrypt. The error says why no client
// can log in with this password.
func hashPassword(password string) (string, error) {
	switch {
	case password == "":
		return "", errors.New("the password is empty")
	case len(password) > maxPassword:
		return "", fmt.Errorf("the password is longer than %d bytes, and bcrypt reads no further: choose a shorter one", maxPassword)
	case strings.ContainsFunc(password, unicode.IsControl):
		return "", errors.New("the password has a control character, which no login can have (RFC 7617)")
	}
	// Every step of the cost doubles the time that anyone can make the gate spend on a wrong password.
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	return string(hash), err
}

// readPassword reads a password, once for each prompt if standard input is a terminal. Otherwise
// standard input has to be one line.
func readPassword(s console.Streams, prompts ...string) (password string, err error) {
	file, ok := console.Terminal(s.In)
	if !ok {
		return readLine(s.In)
	}
	// In raw mode ^C is read as a character, so that it does not end the process before the
	// terminal shows again what is typed.
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(file.Fd()), before)
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{file, s.Err}, "")
	for i, prompt := range prompts {
		typed, err := screen.ReadPassword(prompt)
		switch {
		case err != nil: // ^C and ^D are io.EOF
			return "", errors.New("the input ended before the password")
		case i > 0 && typed != password:
			return "", errors.New("the two passwords differ")
		}
		password = typed
	}
	return password, nil
}

// readLine returns the only line of in, or a part of it that is too long for a password.
func readLine(in io.Reader) (string, error) {
	r := bufio.NewReaderSize(in, 4<<10)
	line, err := r.ReadSlice('\n')
	switch {
	case err == bufio.ErrBufferFull:
		return string(line), nil
	case err != nil && err != io.EOF:
		return "", fmt.Errorf("standard input: %w", err)
	case r.Buffered() > 0:
		return "", errors.New("standard input has more than one line")
	}
	text, ended := strings.CutSuffix(string(line), "\n")
	if ended {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, nil
}
