package demo

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// A recorder is an http.ResponseWriter that keeps what a handler writes.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// response returns what was written in answer to a request, as a client receives it. A handler answers HEAD as it
// answers GET.
func (w *recorder) response(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	if w.status != http.StatusNotModified && w.header.Get("Content-Length") == "" {
		w.header.Set("Content-Length", strconv.Itoa(w.body.Len()))
	}
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: http.NoBody, Request: r,
	}
	resp.ContentLength, _ = strconv.ParseInt(w.header.Get("Content-Length"), 10, 64)
	if r.Method != http.MethodHead {
		resp.Body = io.NopCloser(&w.body)
	}
	return resp
}
