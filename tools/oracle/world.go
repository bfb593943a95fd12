package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// readable lists the kinds that plugins read through informers.
func readable() []runtime.Object {
	return []runtime.Object{
		&v1.Pod{}, &v1.Node{}, &v1.Namespace{}, &v1.Service{}, &v1.ReplicationController{},
		&v1.PersistentVolume{}, &v1.PersistentVolumeClaim{},
		&appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
		&policyv1.PodDisruptionBudget{},
		&storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.CSIDriver{},
		&storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
		&resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{},
		&resourcev1beta2.DeviceTaintRule{},
		&schedulingv1alpha2.PodGroup{}, &schedulingv1alpha2.Workload{},
	}
}

// world is a framework of one profile with everything that its plugins read.
type world struct {
	framework  framework.Framework
	plugins    map[string]fwk.Plugin // without the framework's measuring around them
	shelves    *shelves
	lister     *lister
	nominator  *nominator
	preemption *defaultpreemption.DefaultPreemption // nil where the profile has it not
	weights    map[string]int64
	enabled    enabled
	stop       context.CancelFunc

	writesMutex sync.Mutex
	writes      []string // what the plugins asked the API server to write
}

func newWorld(profileJSON json.RawMessage) (*world, error) {
	profile, err := loadProfile(profileJSON)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &world{
		plugins: map[string]fwk.Plugin{}, weights: map[string]int64{},
		lister: &lister{Snapshot: schedulercache.NewEmptySnapshot()}, nominator: &nominator{}, stop: stop,
	}
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", w.noteWrite)
	w.shelves = newShelves(client, readable())
	draManager, err := w.newDRAManager(ctx, client)
	if err != nil {
		stop()
		return nil, err
	}
	w.framework, err = frameworkruntime.NewFramework(ctx, w.registry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(w.shelves.factory),
		frameworkruntime.WithSnapshotSharedLister(w.lister),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithPodNominator(w.nominator),
		frameworkruntime.WithPodActivator(w.nominator),
		frameworkruntime.WithSharedDRAManager(draManager),
		frameworkruntime.WithSharedCSIManager(
			nodevolumelimits.NewCSIManager(w.shelves.factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(schedulercache.New(ctx, nil, false)),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithParallelism(1), // clusters are small here; the order is then fixed
	)
	if err != nil {
		stop()
		return nil, fmt.Errorf("profile: %w", err)
	}
	w.noteEnabled()
	if found, ok := w.plugins["DefaultPreemption"].(*defaultpreemption.DefaultPreemption); ok {
		w.preemption = found
		found.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) error {
			return nil // who is chosen is in the answer; nobody is deleted
		}
	}
	return w, nil
}

// enabled names plugins in the order in which they run.
type enabled struct{ preFilter, filter []string }

func (w *world) noteEnabled() {
	listed := w.framework.ListPlugins()
	for _, plugin := range listed.PreFilter.Enabled {
		w.enabled.preFilter = append(w.enabled.preFilter, plugin.Name)
	}
	for _, plugin := range listed.Filter.Enabled {
		w.enabled.filter = append(w.enabled.filter, plugin.Name)
	}
	for _, plugin := range listed.Score.Enabled {
		w.weights[plugin.Name] = int64(plugin.Weight)
	}
}

func (w *world) registry() frameworkruntime.Registry {
	registry := plugins.NewInTreeRegistry()
	for name, create := range registry {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := create(ctx, args, handle)
			w.plugins[name] = plugin
			return plugin, err
		}
	}
	return registry
}

// newDRAManager wires what the scheduler's own set-up does for dynamic resources.
func (w *world) newDRAManager(ctx context.Context, client *fake.Clientset) (*dynamicresources.DefaultDRAManager, error) {
	resources := w.shelves.factory.Resource()
	enabled := utilfeature.DefaultFeatureGate.Enabled
	options := resourceslicetracker.Options{
		EnableDeviceTaintRules:   enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: enabled(features.DRAConsumableCapacity),
		SliceInformer:            resources.V1().ResourceSlices(),
		KubeClient:               client,
	}
	if options.EnableDeviceTaintRules {
		options.TaintInformer = resources.V1beta2().DeviceTaintRules()
		options.ClassInformer = resources.V1().DeviceClasses()
	}
	tracker, err := resourceslicetracker.StartTracker(ctx, options)
	if err != nil {
		return nil, err
	}
	claims := assumecache.NewAssumeCache(
		klog.FromContext(ctx), resources.V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	manager := dynamicresources.NewDRAManager(ctx, claims, tracker, w.shelves.factory)
	if classes, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler); ok && enabled(features.DRAExtendedResource) {
		if _, err := resources.V1().DeviceClasses().Informer().AddEventHandler(classes); err != nil {
			return nil, err
		}
	}
	return manager, nil
}

// noteWrite accepts every write and keeps its name; nothing is stored.
func (w *world) noteWrite(action clienttesting.Action) (bool, runtime.Object, error) {
	w.writesMutex.Lock()
	defer w.writesMutex.Unlock()
	resource := action.GetResource().Resource
	if action.GetSubresource() != "" {
		resource += "/" + action.GetSubresource()
	}
	name := ""
	var object runtime.Object = &v1.Pod{}
	switch a := action.(type) {
	case clienttesting.UpdateAction: // also a create: both have an object
		object = a.GetObject()
		if named, ok := object.(interface{ GetName() string }); ok {
			name = named.GetName()
		}
	case interface{ GetName() string }:
		name = a.GetName()
	}
	w.writes = append(w.writes, fmt.Sprintf("%s %s %s/%s", action.GetVerb(), resource, action.GetNamespace(), name))
	return true, object, nil
}

// loadProfile reads one profile as kube-scheduler reads its configuration file; none is the default.
func loadProfile(profileJSON json.RawMessage) (*config.KubeSchedulerProfile, error) {
	if len(profileJSON) == 0 || string(profileJSON) == "null" {
		loaded, err := latest.Default()
		if err != nil {
			return nil, err
		}
		return &loaded.Profiles[0], nil
	}
	file := fmt.Sprintf(
		`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration","profiles":[%s]}`, profileJSON)
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	loaded := object.(*config.KubeSchedulerConfiguration)
	loaded.TypeMeta.APIVersion = "kubescheduler.config.k8s.io/v1"
	if err := validation.ValidateKubeSchedulerConfiguration(loaded); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return &loaded.Profiles[0], nil
}
