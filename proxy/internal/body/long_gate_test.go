package body_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"robotsgate/internal/gatetest"
	"robotsgate/proxy/internal/proxytest"
)

const (
	longBound = 12 << 20 // windows and buffers of four connections
	longBlock = 64 << 10
)

// longDown and longUp are how much of a response, and of an upload, is looked at. The race detector makes it slow.
var (
	longDown = map[bool]int{false: gatetest.Size(100<<20, 500<<20), true: 25 << 20}[gatetest.RaceDetector]
	longUp   = map[bool]int{false: 50 << 20, true: 25 << 20}[gatetest.RaceDetector]
)

// A long response passes byte for byte, and is not gathered on the way.
func TestLongResponse(t *testing.T) {
	block := bytes.Repeat([]byte("<p>0123456789abc"), longBlock/16)
	var size int
	var known bool
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		if known {
			rw.Header().Set("Content-Length", fmt.Sprint(size))
		}
		for range size / len(block) {
			if _, err := rw.Write(block); err != nil {
				return
			}
		}
	}})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		size, known = longDown, !known
		resp, err := v.Client.Get(v.Origin + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if length := resp.ContentLength; known != (length == int64(size)) {
			t.Errorf("Content-Length %d", length)
		}
		flat := keepFlat(t)
		part := make([]byte, len(block))
		for i := range size / len(block) {
			if _, err := io.ReadFull(resp.Body, part); err != nil || !bytes.Equal(part, block) {
				t.Fatalf("block %d: %v, or other bytes", i, err)
			}
			flat(i)
		}
		if n, err := resp.Body.Read(part); n > 0 || err != io.EOF {
			t.Errorf("after the last block: %d, %v", n, err)
		}
		if x := g.Next(t); x.Bytes != int64(size) {
			t.Errorf("the record says %d bytes", x.Bytes)
		}
	})
}

// So does a long upload.
func TestLongUpload(t *testing.T) {
	size := longUp
	block := bytes.Repeat([]byte("0123456789abcdef"), longBlock/16)
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		part, blocks := make([]byte, len(block)), 0
		for {
			n, err := io.ReadFull(r.Body, part)
			if n == 0 && err == io.EOF {
				break
			}
			if err != nil || !bytes.Equal(part, block) {
				fmt.Fprintf(rw, "block %d: %v, or other bytes", blocks, err)
				return
			}
			blocks++
		}
		fmt.Fprint(rw, blocks*len(block))
	}})
	known := true
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		known = !known
		body := &blocks{block: block, left: size / len(block), flat: keepFlat(t)}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.Origin+"/", io.NopCloser(body))
		if err != nil {
			t.Fatal(err)
		}
		if known {
			req.ContentLength = int64(size)
		}
		resp, err := v.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if answer, err := io.ReadAll(resp.Body); string(answer) != fmt.Sprint(size) || err != nil {
			t.Errorf("the origin says %q, %v", answer, err)
		}
	})
}

// blocks are a body made as it is read.
type blocks struct {
	block []byte
	rest  []byte // of the one being read
	left  int
	flat  func(i int)
}

func (b *blocks) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.left == 0 {
			return 0, io.EOF
		}
		b.left--
		b.flat(b.left)
		b.rest = b.block
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// keepFlat returns what to call for every block: it looks now and then whether
// memory grows.
func keepFlat(t *testing.T) func(i int) {
	before := gatetest.Heap()
	return func(i int) {
		if i%100 != 99 {
			return
		}
		if now := gatetest.Heap(); now > before+longBound {
			t.Errorf("block %d: memory grew from %d to %d MB", i, before>>20, now>>20)
			before = now
		}
	}
}
