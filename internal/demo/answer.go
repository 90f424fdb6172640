package demo

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// An answer is an http.ResponseWriter that keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// response returns the answer to a request as a client receives it. A handler answers HEAD as it
// answers GET.
func (a *answer) response(r *http.Request) *http.Response {
	a.WriteHeader(http.StatusOK)
	if a.status != http.StatusNotModified && a.header.Get("Content-Length") == "" {
		a.header.Set("Content-Length", strconv.Itoa(a.body.Len()))
	}
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: http.NoBody, Request: r,
	}
	resp.ContentLength, _ = strconv.ParseInt(a.header.Get("Content-Length"), 10, 64)
	if r.Method != http.MethodHead {
		resp.Body = io.NopCloser(&a.body)
	}
	return resp
}
