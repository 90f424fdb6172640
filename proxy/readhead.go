package proxy

import (
	"context"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/policy/robotstag"
)

// readHead reads a page's head for its robots rules while the body waits, and
// notes in x how far it came.
func (p *Proxy) readHead(x *Exchange, ctx context.Context, body *stream, contentType, contentEncoding string) robotstag.Tags {
	options := htmlmeta.Options{
		ContentType:     contentType,
		ContentEncoding: contentEncoding,
		MaxBytes:        x.settings.Tags.MaxHeadBytes,
	}
	tee := newTee(body.body, x.settings.Tags.MaxHeadBytes)
	body.body = tee
	done := make(chan htmlmeta.Result, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil { // it would end the process
				p.Log.Error("panic while reading a page's head; please report it", "id", x.ID, "origin", x.target.Origin(), "panic", cause)
				done <- htmlmeta.Result{Why: "encoding"}
			}
		}()
		done <- tee.scan(options)
	}()
	timer := time.NewTimer(x.settings.Tags.HeadTimeout)
	defer timer.Stop()
	var result htmlmeta.Result
	select {
	case result = <-done:
	case <-timer.C:
		result = tee.soFar(options)
	case <-ctx.Done():
		result = tee.soFar(options)
	}
	tee.leave()
	x.Head = Head{State: "partial", Why: result.Why, Bytes: result.Bytes}
	if result.Complete {
		x.Head = Head{State: "complete", Bytes: result.Bytes}
	}
	var tags []robotstag.Tags
	for _, m := range result.Metas {
		tags = append(tags, robotstag.ParseMeta(m.Name, m.Content))
	}
	return robotstag.Union(tags...)
}
