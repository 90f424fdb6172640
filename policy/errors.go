package policy

import "errors"

// Errors of an [Engine], beside those of [snapshot.Resolver].
var (
	// ErrCostly says that too many slow decisions are waiting already.
	ErrCostly = errors.New("too many requests wait for a decision that takes long")
	// ErrHiddenDots is the error of [Engine.CheckPath]: the path has a dot segment next to an
	// encoded separator, as in /public/..%2Fprivate, which servers resolve differently.
	ErrHiddenDots = errors.New("the path has a dot segment next to an encoded slash or backslash, which some servers resolve; send the path without it")
)
