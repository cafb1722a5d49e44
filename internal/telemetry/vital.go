package telemetry

import (
	"context"
	"time"

	"countersign/internal/desk"
	"countersign/internal/store"

	"github.com/prometheus/client_golang/prometheus"
)

// vitalsTimeout bounds what a scrape waits for the database.
const vitalsTimeout = 5 * time.Second

// vital reads the vitals at every scrape.
type vital struct {
	read func(context.Context) (desk.Vitals, error)
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	descReadable      = describe("database_readable", "1 if the numbers from the database could be read at this scrape.")
	descOpenRuns      = describe("runs_open", "Runs that have not ended, by status; 100000 means at least.", "status")
	descUnknown       = describe("unknown_effects", "Effects nobody knows whether they happened; 100000 means at least.")
	descUnknownAge    = describe("unknown_effects_oldest_seconds", "How long ago the first of them was sent; 0 if there is none.")
	descPending       = describe("approvals_pending", "Requests that wait for a decision; 100000 means at least.")
	descPendingAge    = describe("approvals_pending_oldest_seconds", "Age of the oldest of them; 0 if there is none.")
	descQueue         = describe("store_queue", "Transactions that wait for the writer.")
	descQueueMax      = describe("store_queue_max", "How many may wait before others are turned away.")
	descTransactions  = describe("store_transactions_total", "Transactions, by what became of them.", "outcome")
	descCommits       = describe("store_commits_total", "Physical commits.")
	descCommitErrors  = describe("store_commit_errors_total", "Physical commits that failed.")
	descHintsDropped  = describe("store_hints_dropped_total", "Functions after a commit that were dropped: pages and some counters are behind.")
	descWAL           = describe("store_wal_bytes", "Size of the write-ahead log.")
	descClockBehind   = describe("store_clock_behind_seconds", "How far the machine's clock is behind what is stored.")
	descBatch         = describe("store_batch_transactions", "Transactions in one physical commit.")
	descQueueWait     = describe("store_queue_wait_seconds", "How long transactions waited for the writer.")
	descCommitSeconds = describe("store_commit_seconds", "How long physical commits took.")
)

// Describe says nothing in advance: what there is depends on the reading.
func (v *vital) Describe(chan<- *prometheus.Desc) {}

// Collect reads and sends. What cannot be read is left out; that it could not
// is a number, too.
func (v *vital) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), vitalsTimeout)
	defer cancel()
	got, err := v.read(ctx)
	collectStore(ch, got.Store)
	if err != nil {
		gauge(ch, descReadable, 0)
		return
	}
	gauge(ch, descReadable, 1)
	for status, n := range got.Open {
		gauge(ch, descOpenRuns, float64(n), status)
	}
	gauge(ch, descUnknown, float64(got.Unknown))
	gauge(ch, descUnknownAge, age(got.At, got.OldestUnknown))
	gauge(ch, descPending, float64(got.Pending))
	gauge(ch, descPendingAge, age(got.At, got.OldestPending))
}

func collectStore(ch chan<- prometheus.Metric, s store.Stats) {
	gauge(ch, descQueue, float64(s.Queue))
	gauge(ch, descQueueMax, float64(s.QueueMax))
	gauge(ch, descWAL, float64(s.WALBytes))
	gauge(ch, descClockBehind, s.ClockBehind.Seconds())
	count(ch, descTransactions, s.Transactions, "committed")
	count(ch, descTransactions, s.Failed, "rolled_back")
	count(ch, descTransactions, s.Refused, "refused")
	count(ch, descCommits, s.Commits)
	count(ch, descCommitErrors, s.CommitErrors)
	count(ch, descHintsDropped, s.HintsDropped)
	histogram(ch, descBatch, s.Group)
	histogram(ch, descQueueWait, s.Wait)
	histogram(ch, descCommitSeconds, s.Commit)
}

// age is how long before now an instant was; 0 if there is none.
func age(now, at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at).Seconds())
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func count(ch chan<- prometheus.Metric, d *prometheus.Desc, v uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// histogram turns counts per bucket into counts up to each bound.
func histogram(ch chan<- prometheus.Metric, d *prometheus.Desc, h store.Histogram) {
	buckets, sum := make(map[float64]uint64, len(h.Bounds)), uint64(0)
	for i, bound := range h.Bounds {
		sum += h.Buckets[i]
		buckets[bound] = sum
	}
	ch <- prometheus.MustNewConstHistogram(d, h.Count, h.Sum, buckets)
}
