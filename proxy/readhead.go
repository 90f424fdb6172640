package proxy

import (
	"context"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
	"robotsgate/proxy/internal/body"
)

// readHead reads a page's head for its robots rules while the body waits, and records in x how
// far it was read.
func (p *Proxy) readHead(x *exchange, ctx context.Context, page *stream, contentType, contentEncoding string) robotstag.Tags {
	options := htmlmeta.Options{
		ContentType:     contentType,
		ContentEncoding: contentEncoding,
		MaxBytes:        x.settings.Tags.MaxHeadBytes,
	}
	tee := body.NewTee(page.body, x.settings.Tags.MaxHeadBytes, &x.out.memory)
	page.body = tee
	// Most heads are short and have arrived with the response's header.
	result, ok := p.safely(x, func() (htmlmeta.Result, bool) { return tee.ScanAtHand(options) })
	if !ok {
		result = p.awaitHead(x, ctx, tee, options)
	}
	tee.Leave()
	x.Head = Head{State: "partial", Why: result.Why, Bytes: result.Bytes}
	switch {
	case result.Complete:
		x.Head = Head{State: "complete", Bytes: result.Bytes}
	case result.Why == "type":
		x.Head, x.signals.unknown = Head{State: "skipped", Why: "type"}, result.Unknown
	}
	x.signals.metas, x.signals.links = result.Metas, result.Links
	var tags []robotstag.Tags
	for _, m := range result.Metas {
		tags = append(tags, robotstag.ParseMeta(m.Name, m.Content))
	}
	return robotstag.Union(tags...)
}

// awaitHead reads a head that has not arrived yet, within the time limit.
func (p *Proxy) awaitHead(x *exchange, ctx context.Context, tee *body.Tee, options htmlmeta.Options) htmlmeta.Result {
	done := make(chan htmlmeta.Result, 1)
	go func() {
		result, _ := p.safely(x, func() (htmlmeta.Result, bool) { return tee.Scan(options), true })
		done <- result
	}()
	timer := time.NewTimer(x.settings.Tags.HeadTimeout)
	defer timer.Stop()
	select {
	case result := <-done:
		return result
	case <-timer.C:
	case <-ctx.Done():
	}
	return tee.ScanSoFar(options)
}

// safely recovers from a panic in scan, which would end the process if scan has a goroutine of
// its own. The head then counts as unreadable.
func (p *Proxy) safely(x *exchange, scan func() (htmlmeta.Result, bool)) (result htmlmeta.Result, ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			p.Log.Error("panic while reading a page's head; please report it", "id", x.ID, "origin", x.Origin, "panic", cause)
			result, ok = htmlmeta.Result{Why: "encoding"}, true
		}
	}()
	return scan()
}
