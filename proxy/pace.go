package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"robotsgate/policy"
)

// A Pacer says when a request may be sent to its origin. The proxy waits for it in one place:
// after the decision, and before anything is sent. Every request that will be sent waits, also a
// denied one in report mode. A passthrough tunnel is one request. Fetches of robots.txt do not wait.
//
// [Settings] are made anew whenever the configuration changes. State that must survive that
// belongs to the caller. Its keys have to be names such as Crawler.Name: the new settings have
// other pointers to the same crawlers.
//
// Implementations are safe for concurrent use.
type Pacer interface {
	// Wait returns nil as soon as the request may be sent. Every error refuses the request: a
	// [*TooSoon] with 429 and the time to try again, most others with 502. The context
	// ends when the client disconnects. d is never nil.
	Wait(ctx context.Context, r policy.Request, d *policy.Decision) error
}

// TooSoon is the error of a [Pacer] for a request that cannot be sent in time.
type TooSoon struct {
	Retry time.Duration // after which the client may try again
}

func (e *TooSoon) Error() string { return fmt.Sprintf("too soon: try again in %v", e.Retry) }

// awaitTurn waits until the request may be sent. It returns what to answer if it must not be.
func (p *Proxy) awaitTurn(ctx context.Context, x *exchange, ask policy.Request) *problem {
	pacer := x.settings.Pacer
	if pacer == nil {
		return nil
	}
	begun := time.Now()
	err := pacer.Wait(ctx, ask, x.Decision)
	x.Waited = time.Since(begun)
	if err == nil {
		return nil
	}
	late, ok := errors.AsType[*TooSoon](err)
	if !ok {
		return failure(x, err)
	}
	x.Error = err.Error()
	return &problem{
		status: http.StatusTooManyRequests, kind: "pace", title: "Too many requests to this origin", fault: "http_request_denied",
		cause: "pace", retry: late.Retry, refused: ByLimit,
		detail: "The next request to this origin may be sent later than this gate lets a request wait. Try again when Retry-After has passed.",
	}
}
