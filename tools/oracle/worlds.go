package main

import "encoding/json"

// worldsMax bounds how many profiles are kept ready: each holds a framework and its caches.
const worldsMax = 64

// worlds keeps one world per profile, oldest out first.
type worlds struct {
	byProfile map[string]*world
	order     []string
}

func newWorlds() *worlds { return &worlds{byProfile: map[string]*world{}} }

func (ws *worlds) get(profile json.RawMessage) (*world, error) {
	key := string(profile)
	if w, ok := ws.byProfile[key]; ok {
		return w, nil
	}
	w, err := newWorld(profile)
	if err != nil {
		return nil, err
	}
	if len(ws.order) == worldsMax {
		ws.byProfile[ws.order[0]].stop()
		delete(ws.byProfile, ws.order[0])
		ws.order = ws.order[1:]
	}
	ws.byProfile[key] = w
	ws.order = append(ws.order, key)
	return w, nil
}

// forget drops all of them, for what a panic left behind.
func (ws *worlds) forget() {
	for _, w := range ws.byProfile {
		w.stop()
	}
	ws.byProfile, ws.order = map[string]*world{}, nil
}
