package e2e

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A rawClient sends the bytes of request targets unchanged, over a connection that it reuses until
// the server closes it.
type rawClient struct {
	address string
	connect string // host:port for CONNECT to the proxy at address; empty: no proxy
	tls     bool   // whether the server expects TLS

	conn net.Conn
	read *bufio.Reader
}

const userAgent = "ExampleBot/1.0"

// answerTimeout ends requests that a server regards as incomplete.
const answerTimeout = 3 * time.Second

// get returns the response to GET target.
func (c *rawClient) get(target, host string) (status int, body string, err error) {
	kept := c.conn != nil
	// After a target with a line break or a space the server may wait for more of the request.
	once := strings.ContainsAny(target, "\x00\r\n \t")
	if once {
		c.close()
	}
	status, body, err = c.try(target, host)
	if err != nil && kept && !once {
		status, body, err = c.try(target, host) // the server has closed the idle connection
	}
	if once {
		c.close()
	}
	return status, body, err
}

func (c *rawClient) try(target, host string) (status int, body string, err error) {
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return 0, "", err
		}
	}
	c.conn.SetDeadline(time.Now().Add(answerTimeout))
	if _, err := io.WriteString(c.conn, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nUser-Agent: "+userAgent+"\r\n\r\n"); err != nil {
		return 0, "", err
	}
	if start, err := c.read.Peek(5); err != nil {
		return 0, "", err
	} else if string(start) != "HTTP/" {
		return 0, c.bodyAlone(), nil
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(resp.Body)
	if resp.Close {
		c.close()
	}
	return resp.StatusCode, string(text), err
}

// bodyAlone returns a response without a head, as in HTTP/0.9.
func (c *rawClient) bodyAlone() string {
	defer c.close()
	c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // the server may not close the connection
	body, _ := io.ReadAll(c.read)
	return string(body)
}

func (c *rawClient) dial() error {
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		return err
	}
	c.conn, c.read = conn, bufio.NewReader(conn)
	conn.SetDeadline(time.Now().Add(answerTimeout))
	if c.connect != "" {
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: %s\r\n\r\n", c.connect, userAgent)
		resp, err := http.ReadResponse(c.read, &http.Request{Method: http.MethodConnect})
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("CONNECT %s: %s", c.connect, resp.Status)
		}
	}
	if c.tls {
		c.conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // the test is about paths
		c.read = bufio.NewReader(c.conn)
	}
	return nil
}

func (c *rawClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
