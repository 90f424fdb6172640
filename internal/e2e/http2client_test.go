package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An http2Client sends the bytes of :path unchanged, through a tunnel of the gate that it reuses
// until the gate closes it.
type http2Client struct {
	tunnel rawClient // to the gate; HTTP/2 begins inside

	framer *http2.Framer
	block  bytes.Buffer
	fields *hpack.Encoder // to block
	stream uint32
}

// get returns the body of the response to GET path.
func (c *http2Client) get(path string) (string, error) {
	body, err := c.try(path)
	if err != nil {
		c.close()
	}
	return body, err
}

func (c *http2Client) try(path string) (string, error) {
	if c.framer == nil {
		if err := c.begin(); err != nil {
			return "", err
		}
	}
	c.tunnel.conn.SetDeadline(time.Now().Add(answerTimeout))
	c.stream += 2
	c.block.Reset()
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: c.tunnel.connect},
		{Name: ":path", Value: path}, {Name: "user-agent", Value: userAgent},
	} {
		c.fields.WriteField(f)
	}
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: true})
	if err != nil {
		return "", err
	}
	return c.body()
}

// begin opens a tunnel and begins HTTP/2 in it.
func (c *http2Client) begin() error {
	if err := c.tunnel.dial(); err != nil {
		return err
	}
	conn := tls.Client(c.tunnel.conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	c.tunnel.conn, c.tunnel.read = conn, bufio.NewReader(conn)
	if err := conn.Handshake(); err != nil {
		return err
	}
	if p := conn.ConnectionState().NegotiatedProtocol; p != "h2" {
		return fmt.Errorf("the gate negotiates %q, want h2", p)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	c.framer, c.fields, c.stream = http2.NewFramer(conn, c.tunnel.read), hpack.NewEncoder(&c.block), ^uint32(0)
	return c.framer.WriteSettings()
}

// body reads frames up to the end of the current stream.
func (c *http2Client) body() (string, error) {
	var body bytes.Buffer
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return "", err
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = c.framer.WriteSettingsAck()
			}
		case *http2.DataFrame:
			body.Write(f.Data())
			if n := f.Header().Length; n > 0 {
				err = c.framer.WriteWindowUpdate(0, n)
			}
		case *http2.RSTStreamFrame:
			return "", nil
		case *http2.GoAwayFrame:
			err = fmt.Errorf("the gate sends GOAWAY: %v", f.ErrCode)
		}
		if err != nil {
			return "", err
		}
		if h := frame.Header(); h.StreamID == c.stream && h.Flags.Has(http2.FlagDataEndStream) && (h.Type == http2.FrameData || h.Type == http2.FrameHeaders) {
			return body.String(), nil
		}
	}
}

func (c *http2Client) close() {
	c.tunnel.close()
	c.framer = nil
}
