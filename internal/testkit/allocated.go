package testkit

import "runtime"

// Allocated is how many bytes fn allocates. It tells input that is unpacked
// from input that is refused, on any machine; a clock does not.
func Allocated(fn func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}
