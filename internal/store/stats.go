package store

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are counters since Open, and the state of the moment.
type Stats struct {
	Queue        int           // transactions waiting now
	QueueMax     int           // how many may wait
	Transactions uint64        // logical transactions committed
	Failed       uint64        // logical transactions rolled back
	Refused      uint64        // turned away because the queue was full
	Commits      uint64        // physical commits
	CommitErrors uint64        // physical transactions that were rolled back or failed
	HintsDropped uint64        // AfterCommit functions dropped beyond hintsMax
	WALBytes     int64         // size of the write-ahead log file
	ClockBehind  time.Duration // how far the machine's clock is behind the stored mark, 0 if it is not
	Group        Histogram     // transactions per physical commit
	Wait         Histogram     // seconds a transaction waited in the queue
	Work         Histogram     // seconds a group's functions took
	Commit       Histogram     // seconds a commit took, hooks included
}

// Histogram counts observations up to each bound; Buckets[i] are those at or
// below Bounds[i] and above the bound before, the last those above them all.
type Histogram struct {
	Bounds  []float64
	Buckets []uint64
	Sum     float64
	Count   uint64
}

var (
	secondsBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	groupBounds   = []float64{1, 2, 4, 8, 16, 32, 64, 96, 128, 256}
)

func newHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Buckets: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) observe(v float64) {
	i := 0
	for i < len(h.Bounds) && v > h.Bounds[i] {
		i++
	}
	h.Buckets[i]++
	h.Sum += v
	h.Count++
}

func (h Histogram) clone() Histogram {
	h.Buckets = append([]uint64(nil), h.Buckets...)
	return h
}

// stats collects for one writer.
type stats struct {
	refused atomic.Uint64
	behind  atomic.Int64 // microseconds
	mu      sync.Mutex   // protects what follows
	total   Stats
}

func (s *stats) init() {
	s.total.Group = newHistogram(groupBounds)
	for _, h := range []*Histogram{&s.total.Wait, &s.total.Work, &s.total.Commit} {
		*h = newHistogram(secondsBounds)
	}
}

func (s *stats) refuse() { s.refused.Add(1) }

// count adds one group.
func (s *stats) count(w *writer, worked time.Time, outcome error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.total
	for _, j := range w.group {
		t.Wait.observe(w.started.Sub(j.queued).Seconds())
		if j.err == nil && outcome == nil {
			t.Transactions++
		} else {
			t.Failed++
		}
	}
	t.Work.observe(worked.Sub(w.started).Seconds())
	switch {
	case outcome != nil:
		t.CommitErrors++
	case w.wrote:
		t.Commits++
		t.Group.observe(float64(w.passed))
		t.Commit.observe(time.Since(worked).Seconds())
	}
}

// Stats reads the counters.
func (db *DB) Stats() Stats {
	w := db.writer
	w.stats.mu.Lock()
	s := w.stats.total
	s.Group, s.Wait, s.Work, s.Commit = s.Group.clone(), s.Wait.clone(), s.Work.clone(), s.Commit.clone()
	w.stats.mu.Unlock()

	s.Queue, s.QueueMax = len(w.queue), cap(w.queue)
	s.Refused = w.stats.refused.Load()
	s.ClockBehind = max(0, time.Duration(w.stats.behind.Load())*time.Microsecond)
	s.WALBytes = walBytes(w.path)
	w.hints.mu.Lock()
	s.HintsDropped = w.hints.dropped
	w.hints.mu.Unlock()
	return s
}

// walBytes is the size of the database's write-ahead log, 0 if there is none.
func walBytes(path string) int64 {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}
