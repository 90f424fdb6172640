package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy"
	"robotsgate/policy/cache"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/body"
	"robotsgate/proxy/internal/header"
	"robotsgate/proxy/internal/response"
)

// checkResponse checks and completes the head of a response. After an error the response's body is closed.
// upgrade is set if the client has asked for a switch of protocols.
func checkResponse(resp *http.Response, upgrade bool) error {
	if header.InvalidResponse(resp, upgrade) {
		resp.Body.Close()
		return errInvalidResponse
	}
	if resp.StatusCode == http.StatusNotModified && resp.ProtoMajor == 2 {
		// Its Content-Length is that of the 200 (RFC 9110, 8.6; RFC 9113, 8.1.1). Transport
		// would report that the body is missing.
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	return nil
}

// An inspector reads what responses state.
type inspector struct {
	log        *slog.Logger
	remembered *cache.Tags   // nil: nothing is remembered
	silence    time.Duration // of [Options]
}

// inspect reads what a response to an allowed request states, and removes from its header what is not for the client.
// The response's body becomes the stream, which is nil if the response switches protocols.
func (i inspector) inspect(ctx context.Context, in *inbound, d *policy.Decision, resp *http.Response, out *response.Recorder) (response.Inspection, *response.Stream) {
	// These are read before anything is removed: Connection may name them.
	contentEncoding := strings.Join(resp.Header["Content-Encoding"], ", ")
	s := response.Inspection{ContentType: htmlmeta.ContentType(resp.Header["Content-Type"]), Received: response.Fields(resp.Header)}
	tags := robotstag.ParseHeader(s.Received["Robots-Tag"], s.Received["X-Robots-Tag"])
	header.Response(resp.Header)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// goproxy must not see Connection and Upgrade, since it would relay the tunnel without an idle limit;
		// the recorder adds them.
		resp.Trailer = nil
		s.ContentType = ""
		s.Tags, s.Head = tags.For(d.Tokens...), response.Head{State: "skipped", Why: "status"}
		s.Stated = stated(d, in.target.Path, &s)
		return s, nil
	}
	header.Trailer(resp.Trailer)
	if resp.StatusCode == http.StatusNoContent {
		delete(resp.Header, "Content-Length") // RFC 9110, 8.6
	}
	page := response.NewStream(out, resp, i.silence)
	if s.Head.Why = skipReason(in, resp, s.ContentType); s.Head.Why != "" {
		s.Head.State = "skipped"
	} else {
		tags = robotstag.Union(tags, i.readHead(ctx, in, page, contentEncoding, &s))
		if s.Head.Why != "timeout" { // then the body may still be read
			header.Trailer(resp.Trailer) // a short body has been read to its end
		}
	}
	resp.Body = page
	s.Tags, s.Head.Cut = tags.For(d.Tokens...), tags.Truncated
	i.remember(in, d, resp, tags, &s)
	s.Stated = stated(d, in.target.Path, &s)
	return s, page
}

// remember stores the rules of a complete response, and adds the stored rules to a response
// that has no page to read, such as a 304, if they are those of its variant.
func (i inspector) remember(in *inbound, d *policy.Decision, resp *http.Response, tags robotstag.Tags, s *response.Inspection) {
	mediaType := htmlmeta.MediaType(s.ContentType)
	switch {
	case i.remembered == nil:
	case in.method == http.MethodGet && resp.StatusCode == http.StatusOK:
		if s.Head.State != "partial" && !s.Unknown { // a rule may be missing
			i.remembered.Put(in.url, in.header, resp.Header, mediaType, tags, usage.HeadOf(s.Metas, s.Links))
		}
	case resp.StatusCode == http.StatusNotModified:
		// The origin has just confirmed them, whatever their age.
		if seen, ok := i.remembered.Get(in.url, in.header, resp.Header, ""); ok {
			addRemembered(s, seen, d.Tokens)
		}
	case in.method == http.MethodHead && resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusPartialContent:
		if seen, ok := i.remembered.Get(in.url, in.header, resp.Header, mediaType); ok && time.Now().Before(seen.Until) {
			addRemembered(s, seen, d.Tokens)
		}
	}
}

// addRemembered adds the remembered rules that the response itself does not repeat.
func addRemembered(s *response.Inspection, seen *cache.Page, tokens []string) {
	s.Seen = seen.Head
	s.Head = response.Head{State: "remembered", Age: max(0, time.Since(seen.At)), Cut: s.Head.Cut || seen.Tags.Truncated}
	for _, rule := range seen.Tags.For(tokens...) {
		if !slices.Contains(s.Tags, rule) {
			s.Remembered = append(s.Remembered, rule)
		}
	}
}

// skipReason returns why a response has no head to read, "" if it has one.
func skipReason(in *inbound, resp *http.Response, contentType string) string {
	switch {
	case !in.settings.Tags.HTML:
		return "off"
	case in.method == http.MethodHead:
		return "method"
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified, isPart(resp):
		return "status"
	case !htmlmeta.MayBePage(contentType):
		return "type"
	}
	return ""
}

// readHead reads a page's head while the body waits. It adds to s what the head states and how far it was read, and
// returns the robots rules.
func (i inspector) readHead(ctx context.Context, in *inbound, page *response.Stream, contentEncoding string, s *response.Inspection) robotstag.Tags {
	options := htmlmeta.Options{
		ContentType:     s.ContentType,
		ContentEncoding: contentEncoding,
		MaxBytes:        int(in.settings.Tags.MaxHeadBytes),
	}
	tee := page.Tee(int(in.settings.Tags.MaxHeadBytes))
	result := i.awaitHead(ctx, in, tee, options)
	tee.Leave()
	s.Head = response.Head{State: "partial", Why: result.Why, Bytes: result.Bytes}
	switch {
	case result.Complete:
		s.Head = response.Head{State: "complete", Bytes: result.Bytes}
	case result.Why == "type":
		s.Head, s.Unknown = response.Head{State: "skipped", Why: "type"}, result.Unknown
	}
	s.Metas, s.Links = result.Metas, result.Links
	var tags []robotstag.Tags
	for _, m := range result.Metas {
		tags = append(tags, robotstag.ParseMeta(m.Name, m.Content))
	}
	return robotstag.Union(tags...)
}

// awaitHead reads a head within the time limit.
func (i inspector) awaitHead(ctx context.Context, in *inbound, tee *body.Tee, options htmlmeta.Options) htmlmeta.Result {
	done := make(chan htmlmeta.Result, 1)
	go func() { done <- i.safely(in, func() htmlmeta.Result { return tee.Scan(options) }) }()
	timer := time.NewTimer(in.settings.Tags.HeadTimeout)
	defer timer.Stop()
	select {
	case result := <-done:
		return result
	case <-timer.C:
	case <-ctx.Done():
	}
	return tee.ScanSoFar(options)
}

// safely recovers from a panic in scan, which would end the process. The head then counts as unreadable.
func (i inspector) safely(in *inbound, scan func() htmlmeta.Result) (result htmlmeta.Result) {
	defer func() {
		if cause := recover(); cause != nil {
			i.log.Error("panic while reading a page's head; please report it", "id", in.id, "origin", in.origin, "panic", cause)
			result = htmlmeta.Result{Why: "encoding"}
		}
	}()
	return scan()
}
