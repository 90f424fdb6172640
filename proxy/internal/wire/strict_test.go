package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

var (
	requestLine = regexp.MustCompile(`^[!-~]+ /[!-~]* HTTP/1\.1$`)
	fieldLine   = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\\x00-\\x20\\x7f]([^\\x00-\\x08\\x0a-\\x1f\\x7f]*[^\\x00-\\x20\\x7f])?)?$")
	chunkSize   = regexp.MustCompile(`^(0|[1-9a-f][0-9a-f]*)$`)
	plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

// readStrictly reads a request that is framed without ambiguity, and returns it without the
// chunks of its body. It writes a 100 to w if the request expects one.
func readStrictly(w io.Writer, r *bufio.Reader, authority string, headOnly bool) (request string, err error) {
	readLine := func() string {
		line, rerr := r.ReadString('\n')
		if !strings.HasSuffix(line, "\r\n") && err == nil {
			if err = fmt.Errorf("a line without CRLF: %q", line); rerr != nil {
				err = io.ErrUnexpectedEOF
			}
		}
		return strings.TrimSuffix(line, "\r\n")
	}
	line := readLine()
	request = line + "\r\n"
	if err == nil && !requestLine.MatchString(line) {
		err = errors.New("request line")
	}
	var hosts, framing []string
	for err == nil {
		line := readLine()
		request += line + "\r\n"
		if line == "" {
			break
		}
		m := fieldLine.FindStringSubmatch(line)
		if m == nil {
			err = fmt.Errorf("field line %q", line)
			break
		}
		switch strings.ToLower(m[1]) {
		case "host":
			hosts = append(hosts, m[2])
		case "content-length", "transfer-encoding":
			framing = append(framing, m[2])
		case "expect":
			if !headOnly {
				io.WriteString(w, "HTTP/1.1 100 Continue\r\n\r\n")
			}
		}
	}
	switch {
	case err != nil:
	case len(hosts) != 1 || hosts[0] != authority:
		err = fmt.Errorf("Host %q, at %s", hosts, authority)
	case len(framing) == 0, headOnly:
	case len(framing) == 1 && plainNumber.MatchString(framing[0]):
		n, _ := strconv.Atoi(framing[0])
		body := make([]byte, n)
		if _, rerr := io.ReadFull(r, body); rerr != nil {
			err = io.ErrUnexpectedEOF
		}
		request += string(body)
	case len(framing) == 1 && framing[0] == "chunked":
		for size := -1; size != 0 && err == nil; {
			line := readLine()
			if err == nil && !chunkSize.MatchString(line) {
				err = fmt.Errorf("chunk size %q", line)
				break
			}
			n, _ := strconv.ParseInt(line, 16, 32)
			size = int(n)
			chunk := make([]byte, size)
			if _, rerr := io.ReadFull(r, chunk); rerr != nil && err == nil {
				err = io.ErrUnexpectedEOF
			}
			request += string(chunk)
			if end := readLine(); err == nil && end != "" {
				err = fmt.Errorf("behind a chunk or as a trailer: %q", end)
			}
		}
	default:
		err = fmt.Errorf("framed by %q", framing)
	}
	return request, err
}
