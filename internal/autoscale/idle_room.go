package autoscale

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// Room is the room for further members of a role.
type Room struct {
	// More is how many more fit, up to what anybody asks for. Short says what prevents more; "" if nothing does.
	More  int
	Short string
	// Why says why it is not known; "" if it is.
	Why string
}

// idleRoom asks for as many members as there is room for. It never asks for fewer than there are: priority decides who
// yields room to whom, so that two roles of equal priority never take it from each other.
func idleRoom(a domain.IdleRoomAlgorithm, in asking) proposal {
	switch room := in.room; {
	case in.count >= in.policy.Max:
		return proposal{count: in.count, why: "max is reached"}
	case room == nil:
		return proposal{count: in.policy.Max, why: "no known limit on room"}
	case room.Why != "":
		return undecided(in, say("it is unknown how much room there is: ", room.Why))
	case room.More == 0:
		return proposal{count: in.count, why: say("no room for more members: ", room.Short)}
	case room.More <= a.KeepFree:
		return proposal{count: in.count, why: say("room for ", room.More, " more", plural(room.More),
			", all kept free by keep_free (", a.KeepFree, ")")}
	case a.KeepFree > 0:
		return proposal{
			count: in.count + room.More - a.KeepFree,
			why: say("room for ", room.More, " more", plural(room.More), ", of which keep_free reserves ",
				a.KeepFree),
		}
	default:
		return proposal{count: in.count + room.More, why: say("room for ", room.More, " more", plural(room.More))}
	}
}

// RoomToAsk returns for how many more members the policy wants to know whether there is room; 0 if it does not.
func (a *Autoscaler) RoomToAsk(count int) int {
	most := 0
	for i := range a.follows {
		if idle := a.follows[i].Algorithm.IdleRoom; idle != nil && count < a.policy.Max {
			most = max(most, a.policy.Max-count+idle.KeepFree)
		}
	}
	return most
}
