package origin

import (
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
)

// net/http does not export the errors for answers that it refuses, so they are told by their texts.
var (
	http1Broken = "net/http: HTTP/1.x transport connection broken: "
	http2Broken = regexp.MustCompile(`^(stream error|connection error|malformed response from server|http2: response header list|http2: server sent GOAWAY|http2: Transport received GOAWAY)`)
	wantsHTTP1  = regexp.MustCompile(`^(stream error: stream ID \d+; |http2: .*ErrCode[:=])HTTP_1_1_REQUIRED`)
)

const (
	codingFault = "http_response_transfer_coding"
	sizeFault   = "http_response_header_section_size"
)

// errHandshake is the error of a TLS handshake that takes too long. It counts as dialling.
var errHandshake = &net.OpError{Op: "dial", Net: "tls", Err: os.ErrDeadlineExceeded}

// An answerError says why the answer of an origin, which has come, cannot be read.
type answerError struct {
	Why   string
	Fault string // the type of the error (RFC 9209, 2.3); "": http_protocol_error
}

func (e *answerError) Error() string { return "the answer cannot be read: " + e.Why }

// errTwice is the error of a request that would have to be sent again.
var errTwice = &answerError{Why: "the origin wants the request over HTTP/1.1, and its body cannot be sent twice. The next request goes there over HTTP/1.1"}

// explained returns the error of a request with its cause, where net/http does not say it in a type.
func explained(err error) error {
	text, read := strings.CutPrefix(err.Error(), http1Broken)
	_, failed := errors.AsType[*net.OpError](err)
	switch {
	case text == "net/http: TLS handshake timeout":
		return errHandshake
	case failed, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrDeadlineExceeded), !read && !http2Broken.MatchString(text):
		return err
	}
	const most = 200 // bytes: some quote what the origin has sent
	e := &answerError{Why: strings.ToValidUTF8(text[:min(len(text), most)], "")}
	switch {
	case strings.Contains(text, "transfer encoding"):
		e.Fault = codingFault
	case strings.Contains(text, "headers exceeded"), strings.Contains(text, "read limit of"), strings.HasPrefix(text, "http2: response header list"):
		e.Fault = sizeFault
	}
	return e
}
