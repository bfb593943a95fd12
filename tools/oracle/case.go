package main

import (
	"encoding/json"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// question is one line of input. Objects are as the API server stores them, up to defaults, which
// are set here: matchLabelKeys are merged and priorities resolved (see admit.go).
type question struct {
	Nodes     []*v1.Node        `json:"nodes"`
	Pods      []*v1.Pod         `json:"pods"`    // with spec.nodeName; finished ones are left out
	Objects   []json.RawMessage `json:"objects"` // of any other kind in readable()
	Nominated []nominated       `json:"nominated"`
	Profile   json.RawMessage   `json:"profile"` // one of KubeSchedulerConfiguration; null: default
	// ScoreAll scores every node, ScoreNodes these, also where the pod does not fit. An answer has
	// then no best node.
	ScoreAll   bool     `json:"scoreAll"`
	ScoreNodes []string `json:"scoreNodes"`

	Pod      *v1.Pod   `json:"pod"`      // the pending one, or
	Sequence []member  `json:"sequence"` // several, one after the other, or
	Admit    []*v1.Pod `json:"admit"`    // pods to store as the API server would, and nothing else
}

// nominated is a pending pod that holds room on a node.
type nominated struct {
	Pod  *v1.Pod `json:"pod"`
	Node string  `json:"node"`
}

// member is one pending pod of a sequence: it goes to Node, or where Node is empty to the winner.
type member struct {
	Pod  *v1.Pod `json:"pod"`
	Node string  `json:"node"`
}

func parseQuestion(line []byte) (*question, []runtime.Object, error) {
	q := &question{}
	if err := json.Unmarshal(line, q); err != nil {
		return nil, nil, fmt.Errorf("case: %w", err)
	}
	decoder := legacyscheme.Codecs.UniversalDeserializer()
	objects := make([]runtime.Object, 0, len(q.Objects))
	for i, raw := range q.Objects {
		object, _, err := decoder.Decode(raw, nil, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		objects = append(objects, object)
	}
	for i := range q.Sequence {
		if q.Sequence[i].Pod == nil {
			return nil, nil, fmt.Errorf("sequence[%d]: no pod", i)
		}
	}
	for i := range q.Nominated {
		if q.Nominated[i].Pod == nil {
			return nil, nil, fmt.Errorf("nominated[%d]: no pod", i)
		}
	}
	return q, objects, nil
}

// place is a cluster ready for questions about pending pods.
type place struct {
	*world
	nodes    []*v1.Node
	existing []*v1.Pod
}

// load puts a question's cluster into a world; world.shelves.clear undoes it.
func load(w *world, q *question, objects []runtime.Object) (*place, error) {
	p := &place{world: w, nodes: q.Nodes}
	known := map[string]bool{}
	for _, node := range q.Nodes {
		known[node.Name] = true
		if err := w.add(node); err != nil {
			return nil, err
		}
	}
	for _, pod := range q.Pods {
		if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue // the scheduler does not watch them
		}
		if err := w.add(pod); err != nil {
			return nil, err
		}
		if known[pod.Spec.NodeName] {
			p.existing = append(p.existing, pod)
		}
	}
	for _, one := range q.Nominated {
		if err := w.add(one.Pod); err != nil {
			return nil, err
		}
	}
	for _, object := range objects {
		if err := w.add(object); err != nil {
			return nil, err
		}
	}
	return p, w.nominator.replace(q.Nominated)
}

// add sets defaults and a uid, and shows the object to the plugins.
func (w *world) add(object runtime.Object) error {
	if _, ok := w.shelves.byType[reflect.TypeOf(object)]; !ok {
		return fmt.Errorf("no plugin reads %s", object.GetObjectKind().GroupVersionKind())
	}
	complete(object)
	return w.shelves.put(object)
}

// complete sets the API server's defaults, and "namespace/name" as uid where there is none.
func complete(object runtime.Object) {
	legacyscheme.Scheme.Default(object)
	named := object.(metav1.Object)
	if named.GetUID() == "" {
		named.SetUID(types.UID(named.GetNamespace() + "/" + named.GetName()))
	}
}
