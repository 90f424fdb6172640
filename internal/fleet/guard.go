package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
)

// A guard is a connection that fails at the first byte of the server that rueidis must not get. rueidis
// allocates what a length says, before it has the value, and panics at an answer without a command.
//
// It passes what the scripts, HELLO and CLUSTER SLOTS return, in RESP2 or RESP3: no pushes, no
// attributes, no values of unknown length.
type guard struct {
	net.Conn
	answers  respScanner // only for Read
	commands respScanner // only for Write
	sent     atomic.Uint64
	err      error // of Read
}

// newGuard returns a connection to a server, with a bound of each value and of each answer.
func newGuard(conn net.Conn, maxValue, maxAnswer int64) *guard {
	none := respScanner{maxValue: math.MaxInt32, maxMessage: math.MaxInt64}
	return &guard{Conn: conn, answers: respScanner{maxValue: maxValue, maxMessage: maxAnswer}, commands: none}
}

func (g *guard) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	n, err := g.Conn.Read(p)
	good, bad := g.answers.scan(p[:n], func() bool { return g.answers.messages < g.sent.Load() })
	if bad != nil {
		g.err = fmt.Errorf("the store's answer is not accepted: %w", bad)
		g.Conn.Close()
		return good, g.err
	}
	return n, err
}

func (g *guard) Write(p []byte) (int, error) {
	if _, err := g.commands.scan(p, func() bool { return true }); err != nil {
		return 0, err
	}
	g.sent.Store(g.commands.messages) // before the store can answer
	return g.Conn.Write(p)
}

const (
	maxRESPDepth    = 8
	maxRESPElements = 64 << 10 // of one message, of all depths
	maxRESPLine     = 64 << 10
	maxRESPNumber   = 20 // characters
)

// A respScanner finds the ends of messages in a stream, and what is not allowed in them.
type respScanner struct {
	maxValue   int64  // length of one value
	maxMessage int64  // length of a message
	messages   uint64 // complete ones

	state    respState
	kind     byte
	line     int   // characters of the line, after kind
	negative bool  // the line has a minus
	number   int64 // value of the line's digits; for a value the bytes that are left
	size     int64 // of the message so far, with values that are announced
	elements int   // of the message so far, as announced
	depth    int
	left     [maxRESPDepth]int64 // elements that are missing at each depth
}

type respState byte

const (
	respKind  respState = iota // at the first byte of a message or element
	respLine                   // in a line of text
	respDigit                  // in a line that is a number
	respLF                     // after the CR of a line
	respValue                  // in a value
	respEndCR                  // after a value
	respEndLF                  // after the CR that follows a value
)

// scan reads the next bytes of the stream. It returns how many are good, and what is wrong with the byte
// that follows them. The result does not depend on how the stream is cut. begin reports whether a
// message may begin.
func (s *respScanner) scan(p []byte, begin func() bool) (good int, err error) {
	for good < len(p) {
		if s.state == respValue {
			n := min(s.number, int64(len(p)-good))
			s.number -= n
			good += int(n)
			if s.number == 0 {
				s.state = respEndCR
			}
			continue
		}
		if s.state == respLine {
			// Faster than a byte at a time.
			rest := p[good:]
			n := bytes.IndexAny(rest, "\r\n")
			if n < 0 {
				n = len(rest)
			}
			allowed := min(n, s.longest()-s.line)
			s.line += allowed
			good += allowed
			if allowed < n {
				return good, errors.New("a line is too long")
			}
			if good == len(p) {
				return good, nil
			}
		}
		if err := s.next(p[good], begin); err != nil {
			return good, err
		}
		good++
	}
	return good, nil
}

var (
	errRESPForm   = errors.New("it is not valid RESP")
	errRESPUnsent = errors.New("it answers no command")
)

// next reads a byte that does not belong to a value, nor to the text of a line.
func (s *respScanner) next(c byte, begin func() bool) error {
	switch s.state {
	case respKind:
		if s.depth == 0 {
			s.size, s.elements = 0, 0
			if !begin() {
				return errRESPUnsent
			}
		}
		return s.begin(c)
	case respDigit:
		return s.digit(c)
	case respLine: // the end of its text
		if s.kind == '#' && s.line == 0 {
			return errRESPForm
		}
		return s.expect(c, '\r', respLF)
	case respLF:
		if c != '\n' {
			return errRESPForm
		}
		return s.endLine()
	case respEndCR:
		return s.expect(c, '\r', respEndLF)
	case respEndLF:
		if c != '\n' {
			return errRESPForm
		}
		s.end()
	}
	return nil
}

func (s *respScanner) expect(c, want byte, then respState) error {
	if c != want {
		return errRESPForm
	}
	s.state = then
	return nil
}

// begin reads the first byte of a message or element.
func (s *respScanner) begin(c byte) error {
	s.kind, s.line, s.number, s.negative = c, 0, 0, false
	switch c {
	case '+', '-', ',', '(', '#', '_':
		s.state = respLine
	case ':', '$', '=', '*', '%', '~':
		s.state = respDigit
	default:
		return fmt.Errorf("the type %q is not used here", c)
	}
	return nil
}

// longest returns how many characters of text the line may have. rueidis does not look for the end of a
// line that is a boolean or null.
func (s *respScanner) longest() int {
	switch s.kind {
	case '#':
		return 1
	case '_':
		return 0
	}
	return maxRESPLine
}

// digit reads a byte of a number, or the CR after it.
func (s *respScanner) digit(c byte) error {
	switch {
	case c == '\r' && (s.line > 1 || s.line == 1 && !s.negative):
		s.state = respLF
		return s.checkNumber()
	case c == '-' && s.line == 0 && (s.kind == ':' || s.kind == '$' || s.kind == '*'):
		s.negative = true
	case c >= '0' && c <= '9' && s.line < maxRESPNumber:
		if s.kind != ':' {
			s.number = s.number*10 + int64(c-'0')
			return s.checkLength()
		}
	default:
		return errRESPForm
	}
	s.line++
	return nil
}

// checkLength checks a length after each digit, so that no larger one is ever complete.
func (s *respScanner) checkLength() error {
	s.line++
	most := int64(maxRESPElements)
	if s.kind == '$' || s.kind == '=' {
		most = s.maxValue
	}
	if s.negative {
		most = 1
	}
	if s.number > most {
		return fmt.Errorf("a length of %d or more is over the limit of %d", s.number, most)
	}
	return nil
}

// checkNumber checks a complete length.
func (s *respScanner) checkNumber() error {
	if s.negative {
		if s.kind != ':' && s.number != 1 {
			return errRESPForm
		}
		return nil
	}
	switch s.kind {
	case '$', '=':
		if s.size += s.number; s.size > s.maxMessage {
			return fmt.Errorf("it is longer than %d bytes", s.maxMessage)
		}
	case '*', '%', '~':
		if s.kind == '%' {
			s.number *= 2
		}
		if s.elements += int(s.number); s.elements > maxRESPElements {
			return fmt.Errorf("it has more than %d elements", maxRESPElements)
		}
		if s.number > 0 && s.depth == maxRESPDepth {
			return errors.New("its lists are nested too deeply")
		}
	}
	return nil
}

// endLine follows the LF of a line.
func (s *respScanner) endLine() error {
	s.size += int64(s.line)
	if s.size > s.maxMessage {
		return fmt.Errorf("it is longer than %d bytes", s.maxMessage)
	}
	switch s.kind {
	case '$', '=':
		if !s.negative {
			if s.state = respValue; s.number == 0 {
				s.state = respEndCR
			}
			return nil
		}
	case '*', '%', '~':
		if !s.negative && s.number > 0 {
			s.left[s.depth] = s.number
			s.depth++
			s.state = respKind
			return nil
		}
	}
	s.end()
	return nil
}

// end follows the last byte of an element, which may be that of the lists around it, too.
func (s *respScanner) end() {
	s.state = respKind
	for s.depth > 0 {
		if s.left[s.depth-1]--; s.left[s.depth-1] > 0 {
			return
		}
		s.depth--
	}
	s.messages++
}
