package meter

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/gomodule/redigo/redis"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// redisServer is a server with the lists to request, by database.
type redisServer struct {
	address string
	lists   map[int][]string
}

// redisList is the length of a list, or an error.
type redisList struct {
	length int64
	err    error
}

// askRedis requests the length of a list, together with all others on its server.
func (r *reading) askRedis(q domain.RedisQueue) func() (int64, error) {
	type key struct{ address string }
	if r.servers == nil {
		r.servers = map[string]*redisServer{}
	}
	server := r.servers[q.Address]
	if server == nil {
		server = &redisServer{address: q.Address, lists: map[int][]string{}}
		r.servers[q.Address] = server
	}
	if !slices.Contains(server.lists[q.Database], q.Key) {
		server.lists[q.Database] = append(server.lists[q.Database], q.Key)
	}
	asked := share(r, key{q.Address}, nil, server.lengths)
	return func() (int64, error) {
		lengths, err := asked.wait()
		if err != nil {
			return 0, err
		}
		list := lengths[q]
		return list.length, list.err
	}
}

// lengths requests all lists at once, on one connection. A missing list is empty, as Redis keeps no empty ones.
func (s *redisServer) lengths(ctx context.Context) (map[domain.RedisQueue]redisList, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, unreached(ctx, err)
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })() // the client takes no context
	lengths, err := s.ask(redis.NewConn(repliesOf(connection), 0, 0))
	if err != nil {
		return nil, unreached(ctx, err)
	}
	return lengths, nil
}

// ask sends all commands, and then reads all replies. The returned error is one of the connection.
func (s *redisServer) ask(client redis.Conn) (map[domain.RedisQueue]redisList, error) {
	databases := slices.Sorted(maps.Keys(s.lists))
	for _, database := range databases {
		if err := client.Send("SELECT", database); err != nil {
			return nil, err
		}
		for _, key := range s.lists[database] {
			if err := client.Send("LLEN", key); err != nil {
				return nil, err
			}
		}
	}
	if err := client.Flush(); err != nil {
		return nil, err
	}
	lengths := map[domain.RedisQueue]redisList{}
	for _, database := range databases {
		_, refused := client.Receive()
		for _, key := range s.lists[database] {
			length, err := redis.Int64(client.Receive())
			if refused != nil {
				err = refused // a failed SELECT: the length is of another database
			}
			if err == nil && length < 0 {
				err = fmt.Errorf("invalid length %d", length)
			}
			if err != nil {
				err = fmt.Errorf("list %q: %w", key, err)
			}
			lengths[domain.RedisQueue{Address: s.address, Key: key, Database: database}] = redisList{length, err}
		}
	}
	if err := client.Err(); err != nil {
		return nil, err
	}
	return lengths, nil
}
