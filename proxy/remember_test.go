package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"robotsgate/policy"
)

// Answers without a head to read show the rules that their URL was last seen
// with: a 304 whatever their age, HEAD and 206 while they are fresh.
func TestRemembersTags(t *testing.T) {
	page, cacheControl := taggedPage, ""
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		rw.Header().Set("X-Robots-Tag", "nofollow")
		if cacheControl != "" {
			rw.Header().Set("Cache-Control", cacheControl)
		}
		switch {
		case r.Header.Get("If-None-Match") != "":
			rw.WriteHeader(http.StatusNotModified)
		case r.Header.Get("Range") != "":
			rw.WriteHeader(http.StatusPartialContent)
			io.WriteString(rw, page[:5])
		default:
			io.WriteString(rw, page)
		}
	}})
	const remembered = `nofollow;src=x-robots-tag;scope="*", noindex;src=meta;scope="robots";remembered, ` +
		`max-snippet;v=20;src=meta;scope="robots";remembered, nosnippet;src=meta;scope="ExampleBot";remembered`
	origins(t, w, func(t *testing.T, origin string) {
		page, cacheControl = taggedPage, ""
		resp, _ := w.get(origin+"/a", "If-None-Match", `"x"`)
		wantHeader(t, resp, headerMeta, "skipped;why=status")
		resp, _ = w.get(origin + "/a")
		wantHeader(t, resp, headerMeta, "complete")
		for _, header := range []string{"If-None-Match", "Range"} {
			resp, _ = w.get(origin+"/a", header, "x")
			wantHeader(t, resp, headerMeta, "remembered;age=")
			wantHeader(t, resp, headerTags, remembered)
		}
		resp, _ = w.do(http.MethodHead, origin+"/a", nil)
		wantHeader(t, resp, headerMeta, "remembered;age=")
		wantHeader(t, resp, headerTags, remembered)
		resp, _ = w.do(http.MethodHead, origin+"/a?other", nil)
		wantHeader(t, resp, headerMeta, "skipped;why=method")

		// A new complete answer replaces them; one that is not fresh binds only
		// where the origin confirms it.
		page, cacheControl = "<head><meta name=robots content=noarchive>", "no-store"
		w.get(origin + "/a")
		resp, _ = w.do(http.MethodHead, origin+"/a", nil)
		wantHeader(t, resp, headerMeta, "skipped;why=method")
		resp, _ = w.get(origin+"/a", "If-None-Match", "x")
		wantHeader(t, resp, headerMeta, "remembered;age=")
		if tags := resp.Header.Get(headerTags); !strings.HasSuffix(tags, `, noarchive;src=meta;scope="robots";remembered`) || strings.Contains(tags, "noindex") {
			t.Errorf("tags: got %s", tags)
		}
	})
}

// TestRemembersVariant: with RefuseUnread a part of a page passes only if the head of this variant is known to reserve
// nothing. Other variants of the URL say nothing about it.
func TestRemembersVariant(t *testing.T) {
	const reserved, open = `<head><meta name="tdm-reservation" content="1"></head>` + originMark, "<head></head>" + originMark
	for _, c := range []struct {
		path, field string // of the response
		pass        bool   // a part of the open page passes
	}{
		{"/by-cookie", "Vary: Cookie", true},
		{"/by-any", "Vary: *", false},
		{"/by-type", "", true},
	} {
		w := newWorld(t, trains(options{
			engine: func(c *policy.Config) { c.Usage.Unread = policy.RefuseUnread },
			handler: func(rw http.ResponseWriter, r *http.Request) {
				if name, value, ok := strings.Cut(c.field, ": "); ok {
					rw.Header().Set(name, value)
				}
				page := open
				if r.Header.Get("Cookie") == "v=reserved" {
					page = reserved
				}
				rw.Header().Set("Content-Type", "text/html")
				if page == open && c.path == "/by-type" {
					rw.Header().Set("Content-Type", "application/json")
				}
				if r.Header.Get("Range") != "" {
					rw.WriteHeader(http.StatusPartialContent)
				}
				io.WriteString(rw, page)
			},
		}))
		w.ways(t, func(t *testing.T, v way) {
			resp, _ := v.get(t, c.path, "Cookie", "v=open")
			wantStatus(t, resp, http.StatusOK)
			resp, body := v.get(t, c.path, "Cookie", "v=reserved", "Range", "bytes=0-")
			wantStatus(t, resp, http.StatusForbidden)
			if strings.Contains(body, originMark) {
				t.Errorf("%s: got %q", c.path, body)
			}
			wantHeader(t, resp, headerMeta, "skipped;why=status")
			want := http.StatusForbidden
			if c.pass {
				want = http.StatusPartialContent
			}
			resp, _ = v.get(t, c.path, "Cookie", "v=open", "Range", "bytes=0-")
			wantStatus(t, resp, want)
		})
	}
}
