package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"robotsgate/policy"
	"robotsgate/proxy/internal/proxytest"
)

// Answers without a head to read show the rules that their URL was last seen
// with: a 304 whatever their age, HEAD and 206 while they are fresh.
func TestRemembersTags(t *testing.T) {
	page, cacheControl := taggedPage, ""
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
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
	g.Origins(t, func(t *testing.T, origin string) {
		page, cacheControl = taggedPage, ""
		resp, _ := g.Get(origin+"/a", "If-None-Match", `"x"`)
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "skipped;why=status")
		resp, _ = g.Get(origin + "/a")
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "complete")
		for _, header := range []string{"If-None-Match", "Range"} {
			resp, _ = g.Get(origin+"/a", header, "x")
			proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "remembered;age=")
			proxytest.WantHeader(t, resp, "Robots-Gate-Tags", remembered)
		}
		resp, _ = g.Do(http.MethodHead, origin+"/a", nil)
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "remembered;age=")
		proxytest.WantHeader(t, resp, "Robots-Gate-Tags", remembered)
		resp, _ = g.Do(http.MethodHead, origin+"/a?other", nil)
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "skipped;why=method")

		// A new complete answer replaces them; one that is not fresh binds only
		// where the origin confirms it.
		page, cacheControl = "<head><meta name=robots content=noarchive>", "no-store"
		g.Get(origin + "/a")
		resp, _ = g.Do(http.MethodHead, origin+"/a", nil)
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "skipped;why=method")
		resp, _ = g.Get(origin+"/a", "If-None-Match", "x")
		proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "remembered;age=")
		if tags := resp.Header.Get("Robots-Gate-Tags"); !strings.HasSuffix(tags, `, noarchive;src=meta;scope="robots";remembered`) || strings.Contains(tags, "noindex") {
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
		g := proxytest.Start(t, trains(proxytest.Options{
			Engine: func(c *policy.Config) { c.Usage.Unread = policy.RefuseUnread },
			Handler: func(rw http.ResponseWriter, r *http.Request) {
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
		g.Ways(t, func(t *testing.T, v proxytest.Way) {
			resp, _ := v.Get(t, c.path, "Cookie", "v=open")
			proxytest.WantStatus(t, resp, http.StatusOK)
			resp, body := v.Get(t, c.path, "Cookie", "v=reserved", "Range", "bytes=0-")
			proxytest.WantStatus(t, resp, http.StatusForbidden)
			if strings.Contains(body, originMark) {
				t.Errorf("%s: got %q", c.path, body)
			}
			proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "skipped;why=status")
			want := http.StatusForbidden
			if c.pass {
				want = http.StatusPartialContent
			}
			resp, _ = v.Get(t, c.path, "Cookie", "v=open", "Range", "bytes=0-")
			proxytest.WantStatus(t, resp, want)
		})
	}
}
