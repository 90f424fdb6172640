package gatetest

import "runtime"

// Heap returns the bytes that are in use on the heap, after the garbage was collected.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // what a finalizer or a sync.Pool had held on to
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
