//go:build linux

package node

import (
	"context"
	"maps"
	"net/http"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Handler answers all calls.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	relay.Clusters.Answer(mux,
		func(context.Context, string, relay.None) ([]string, error) { return statedir.Clusters(layout.Clusters) })
	n.answerStore(mux)
	n.answerMembers(mux)
	n.answerFolders(mux)
	relay.AnswerLook(mux, n.looks)

	answer(n, mux, relay.Report, func(ctx context.Context, p part, q telemetry.Query) (telemetry.Answer, error) {
		return p.Report(ctx, q), nil
	})
	answerAs(n.part, mux, relay.Ports,
		func(context.Context, part, relay.None) ([]int, error) { return telemetry.ListeningPorts() })
	answer(n, mux, relay.Preflight,
		func(ctx context.Context, p part, specs []domain.MemberSpec) (relay.Findings, error) {
			problems, err := p.preflight(ctx, specs)
			return relay.FindingsOf(problems), err
		})

	answerAs(n.part, mux, relay.Join, func(ctx context.Context, p part, m relay.Membership) (relay.Credentials, error) {
		return p.join(ctx, m)
	})
	answerAs(n.part, mux, relay.Leave,
		func(ctx context.Context, p part, _ relay.None) (relay.None, error) { return relay.None{}, p.leave(ctx) })
	act(n, mux, relay.Introduce, func(_ context.Context, p part, i relay.Introduction) error { return p.introduce(i) })
	act(n, mux, relay.StartResidents,
		func(ctx context.Context, p part, o relay.Orders) error { return p.startResidents(ctx, o) })
	answer(n, mux, relay.Residents,
		func(ctx context.Context, p part, _ relay.None) (domain.Residents, error) { return p.residents(ctx) })
	act(n, mux, relay.StopController,
		func(ctx context.Context, p part, _ relay.None) error { return p.StopController(ctx) })
	return mux
}

func (n *Node) answerStore(mux *http.ServeMux) {
	answer(n, mux, relay.Get,
		func(ctx context.Context, p part, key engine.Key) (engine.Item, error) { return p.Get(ctx, key) })
	answer(n, mux, relay.List,
		func(ctx context.Context, p part, kind domain.Kind) ([]engine.Item, error) { return p.List(ctx, kind) })
	answer(n, mux, relay.Put,
		func(ctx context.Context, p part, item engine.Item) (relay.Written, error) { return p.put(ctx, item) })
	answer(n, mux, relay.Delete,
		func(ctx context.Context, p part, key engine.Key) (relay.Ledger, error) { return p.delete(ctx, key) })
	answer(n, mux, relay.Locate,
		func(ctx context.Context, p part, _ relay.None) (relay.Located, error) { return p.locate(ctx) })
	answer(n, mux, relay.ReadLedger,
		func(_ context.Context, p part, _ relay.None) (relay.Ledger, error) { return p.ledger() })
	act(n, mux, relay.Copy, func(ctx context.Context, p part, change relay.Change) error { return p.copy(ctx, change) })
	answer(n, mux, relay.Dump,
		func(ctx context.Context, p part, _ relay.None) (relay.Contents, error) { return p.dump(ctx) })
	act(n, mux, relay.Restore,
		func(ctx context.Context, p part, contents relay.Contents) error { return p.restore(ctx, contents) })
	act(n, mux, relay.Acquire,
		func(ctx context.Context, p part, lease relay.Lease) error { return p.acquire(ctx, lease) })
	act(n, mux, relay.Release,
		func(ctx context.Context, p part, lease relay.Lease) error { return p.release(ctx, lease) })
}

func (n *Node) answerMembers(mux *http.ServeMux) {
	answer(n, mux, relay.Observe, func(ctx context.Context, p part, group string) ([]domain.Observed, error) {
		return p.Observe(ctx, group)
	})
	act(n, mux, relay.Stage, func(ctx context.Context, p part, s relay.Staging) error { return p.stage(ctx, s) })
	act(n, mux, relay.Prune, func(ctx context.Context, p part, group string) error { return p.Prune(ctx, group, nil) })
	act(n, mux, relay.Start,
		func(ctx context.Context, p part, s relay.Starting) error { return p.Start(ctx, s.Group, s.Run) })
	answer(n, mux, relay.Staged, func(_ context.Context, p part, s relay.Starting) ([]domain.Observed, error) {
		return p.Staged(s.Group, s.Run)
	})
	act(n, mux, relay.Evict, func(ctx context.Context, p part, names []string) error { return p.Evict(ctx, names) })
	act(n, mux, relay.Stop,
		func(ctx context.Context, p part, s relay.Stopping) error { return p.Stop(ctx, s.Runs, s.Reason) })
	act(n, mux, relay.Remove, func(ctx context.Context, p part, names []string) error { return p.Remove(ctx, names) })
	act(n, mux, relay.Pause, func(ctx context.Context, p part, names []string) error { return p.Pause(ctx, names) })
	act(n, mux, relay.Continue,
		func(ctx context.Context, p part, names []string) error { return p.Continue(ctx, names) })
	answer(n, mux, relay.Logs, func(ctx context.Context, p part, q relay.LogQuery) ([]string, error) {
		return p.Logs(ctx, q.Member, q.Options)
	})
	answer(n, mux, relay.Follow, func(ctx context.Context, p part, q relay.FollowQuery) (engine.LogPart, error) {
		return p.Follow(ctx, q.Member, q.From)
	})
	relay.AnswerWatch(mux, func(ctx context.Context, cluster string) (<-chan struct{}, error) {
		p, err := n.joined(cluster)
		if err != nil {
			return nil, err
		}
		return p.watch(ctx)
	})
}

func (n *Node) answerFolders(mux *http.ServeMux) {
	answer(n, mux, relay.MissingFolders,
		func(ctx context.Context, p part, folders []domain.KeptFolder) ([]domain.KeptFolder, error) {
			return p.MissingFolders(ctx, folders)
		})
	act(n, mux, relay.RemoveFolders, func(ctx context.Context, p part, folders []domain.KeptFolder) error {
		return p.RemoveFolders(ctx, folders)
	})
	relay.AnswerReadFolder(mux,
		func(ctx context.Context, cluster string, folder domain.KeptFolder, visit engine.FolderVisitor) error {
			p, err := n.joined(cluster)
			if err != nil {
				return err
			}
			return p.ReadFolder(ctx, folder, visit)
		})
	answer(n, mux, relay.FindFiles, func(ctx context.Context, p part, _ relay.None) (engine.HostFiles, error) {
		ledger, err := p.ledger()
		if err != nil {
			return engine.HostFiles{}, err
		}
		found, err := p.FindFiles(ctx)
		return found[ledger.Host], err
	})
	answer(n, mux, relay.UsedFiles,
		func(_ context.Context, p part, digests []string) ([]string, error) { return p.UsedFiles(digests) })
	act(n, mux, relay.RemoveFiles,
		func(ctx context.Context, p part, digests []string) error { return p.RemoveFiles(ctx, digests) })
	relay.AnswerProvideFiles(mux, func(ctx context.Context, cluster string, spec engine.FilesSpec) error {
		p, err := n.joined(cluster)
		if err != nil {
			return err
		}
		return p.ProvideFiles(ctx, spec)
	})
}

// stage stores what members need in addition to their specifications, and then these.
func (p part) stage(ctx context.Context, s relay.Staging) error {
	for _, spec := range s.Specs {
		if auth := s.RegistryLoginOf(spec); auth != "" {
			if err := p.dir.WriteRegistryLogin(spec, auth); err != nil {
				return err
			}
		}
	}
	return p.Stage(ctx, atHome(s.WithSecrets()))
}

// atHome adds to specifications the variables of the user that they run as. For members that name a user, systemd sets
// them, and for those with an image their Engine.
func atHome(specs []domain.MemberSpec) []domain.MemberSpec {
	for i := range specs {
		if specs[i].Container.User != "" || specs[i].Image != "" {
			continue
		}
		env := map[string]string{"HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh"}
		maps.Copy(env, specs[i].Env)
		specs[i].Env = env
	}
	return specs
}
