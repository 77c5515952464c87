//go:build linux

package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// censusEvery is how often all processes of the host are searched for instances; in between, only known ones are read.
// Reading the table of a large host takes some ten milliseconds.
const censusEvery = 10 * time.Second

// lookPatience is how long an answer waits for the GPUs: longer than the limit of a driver call, and shorter than the
// clients' timeout.
const lookPatience = 3 * time.Second

// notLooked is why the GPUs are unknown until they were first read.
const notLooked = "they are being read for the first time: try again in a few seconds"

// Resident measures a host as long as it runs, and answers queries. All its methods are safe for concurrent use.
type Resident struct {
	life     context.Context //nolint:containedctx // of the resident, not of a query
	settings Settings
	node     string
	log      *slog.Logger

	// measuring is held while a sample is taken.
	measuring sync.Mutex
	last      reading
	// known is when instances were last searched, and refreshed when a search started that was requested and followed
	// by a measurement.
	known, refreshed time.Time
	units            unitLook

	// looking is full while the GPUs are being read.
	looking chan struct{}
	owners  owners

	mu      sync.Mutex
	history *history
	totals  reading // the last one, for all totals
	gpus    domain.HostGPUs
	looked  bool // whether the GPUs were read
	sighted bool // whether they had been when the last sample was taken
}

// NewResident returns a resident of a node, until ctx is done. It has measured for a moment, so that there is a sample
// of everything except the GPUs, which may take long. It continues its predecessor's history.
func NewResident(ctx context.Context, settings Settings, node string, log *slog.Logger) (*Resident, error) {
	r := resident(ctx, settings, node, log)
	if settings.History != "" {
		var err error
		if r.history, err = loadHistory(settings.History, time.Now()); err != nil {
			log.Error("can't load the previous agent's history", "error", err)
		}
	}
	return r, r.refresh(ctx, time.Now())
}

// resident returns one that has not measured yet.
func resident(ctx context.Context, settings Settings, node string, log *slog.Logger) *Resident {
	return &Resident{
		life: ctx, settings: settings, node: node, log: log, history: newHistory(), looking: make(chan struct{}, 1),
		owners: owners{settings: settings},
		gpus:   domain.HostGPUs{Unknown: notLooked, SampledAt: time.Now()},
	}
}

// moment is how long a sample takes that somebody waits for, and the minimum for any sample: below that, the counters'
// ticks of 10 ms are too coarse.
const moment = 250 * time.Millisecond

// Run measures until ctx is done, and then leaves its history to its successor. Failures are retried, and logged once.
func (r *Resident) Run(ctx context.Context) {
	go func() {
		r.look(ctx)
		for pause(ctx, Interval) {
			r.look(ctx) // which may take long, and delays no sample
		}
	}()
	complaint := ""
	for pause(ctx, Interval) {
		message := ""
		if err := r.step(); err != nil {
			message = err.Error()
			if message != complaint {
				r.log.Error("can't measure the host; retrying", "error", err)
			}
		}
		complaint = message
	}
	if r.settings.History == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.history.save(r.settings.History); err != nil {
		r.log.Error("can't save the history for the next agent", "error", err)
	}
}

// pause waits, and reports whether ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// look reads the GPUs when it is its turn, and waits for that until ctx is done. A read that has begun continues: it is
// not cancelled with its caller, as the next one waits for it.
func (r *Resident) look(ctx context.Context) {
	select {
	case r.looking <- struct{}{}:
	case <-ctx.Done():
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { <-r.looking }()
		found := r.settings.sampleGPUs(r.life, &r.owners)
		if r.life.Err() != nil {
			return // it was cut short
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if found.Unknown != "" {
			found.UnknownSince = cmp.Or(r.gpus.UnknownSince, found.SampledAt)
		}
		r.gpus, r.looked = found, true
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// step takes a sample of the time since the last one, unless one was just taken.
func (r *Resident) step() error {
	r.measuring.Lock()
	defer r.measuring.Unlock()
	if time.Since(r.last.at) < moment {
		return nil
	}
	if time.Since(r.units.at) >= unitsEvery {
		r.units = r.settings.lookAtUnits(r.life, r.units)
	}
	known := r.last
	if time.Since(r.known) >= censusEvery {
		known = reading{}
	}
	return r.sample(known)
}

// refresh searches instances, and then takes a sample of a moment, so that it includes all instances that were running
// at the time started. The result of a search that began after started is reused.
func (r *Resident) refresh(ctx context.Context, started time.Time) error {
	r.measuring.Lock()
	defer r.measuring.Unlock()
	if r.refreshed.After(started) {
		return nil
	}
	var err error
	r.units = r.settings.lookAtUnits(ctx, r.units)
	if r.last, err = r.settings.read(reading{}, r.units); err != nil {
		return err
	}
	r.known = r.last.at
	looked := r.last.at
	if !pause(ctx, moment) {
		return context.Cause(ctx)
	}
	r.units = r.settings.lookAtUnits(ctx, r.units)
	if err := r.sample(r.last); err != nil {
		return err
	}
	r.refreshed = looked
	return nil
}

// sample takes a sample of the instances known from an earlier reading, or of all if that has none.
func (r *Resident) sample(known reading) error {
	now, err := r.settings.read(known, r.units)
	if err != nil {
		return err
	}
	if known.instances == nil {
		r.known = now.at
	}
	taken := between(r.last, now)
	r.last = now
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals, r.sighted = now, r.looked
	r.history.add(taken, r.gpus)
	return nil
}

// lacksGPUs reports whether the GPUs were first read after the last sample, which thus lacks the GPU memory of
// instances.
func (r *Resident) lacksGPUs() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looked && !r.sighted
}

// Report returns the report of a window that ends now.
func (r *Resident) Report(window time.Duration) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.history.report(window, time.Now())
	report.Node, report.GPUs, report.Starting = r.node, r.gpus, !r.looked
	report.Host.TotalCPUs, report.Host.TotalMemoryMiB, report.Host.TotalDiskMiB = r.totals.cpus,
		int64(r.totals.memory.total>>20), int64(r.totals.disk.total>>20)
	report.Host.BusySeconds, report.Host.ReceivedBytes, report.Host.SentBytes = r.totals.busy.Seconds(),
		known(r.totals.received), known(r.totals.sent)
	for id, instance := range report.Instances {
		if t, found := r.totals.traffic[id]; found {
			instance.TrafficUnknown = t.unknown
			if t.unknown == "" {
				instance.ReceivedBytes, instance.SentBytes = &t.received, &t.sent
			}
			report.Instances[id] = instance
		}
	}
	return report
}

// Handler answers requests for reports, with the options of a [Query]: GET /report?window=1m&new=true, with a [Report]
// as JSON. The GPUs are read for each request; if that takes long, the answer has those of the last read.
func (r *Resident) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+reportPath, func(w http.ResponseWriter, request *http.Request) {
		arrived := time.Now()
		var window time.Duration
		if text := request.URL.Query().Get(windowOption); text != "" {
			var err error
			if window, err = time.ParseDuration(text); err == nil {
				err = CheckWindow(window)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		looking, cancel := context.WithTimeout(request.Context(), lookPatience)
		defer cancel()
		r.look(looking)
		late := r.lacksGPUs()
		if late {
			arrived = time.Now() // a sample from before the GPUs were read is not enough
		}
		if late || request.URL.Query().Has(newOption) {
			if err := r.refresh(request.Context(), arrived); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.Report(window)) // the client has gone
	})
	return mux
}

// Once measures this host for a moment, for a caller without a resident.
func Once(ctx context.Context, settings Settings) (Report, error) {
	r := resident(ctx, settings, "", slog.New(slog.DiscardHandler))
	r.look(ctx) // however long it takes
	if err := r.refresh(ctx, time.Now()); err != nil {
		return Report{}, err
	}
	return r.Report(Interval), nil
}
