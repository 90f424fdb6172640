//go:build !unix || solaris || aix

package audit

import "os"

func tryLock(*os.File) (got, busy bool) { return false, false }

func unlock(*os.File) {}
