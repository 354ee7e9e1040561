"""Adds to the corpus what XLA makes of the same programs for a GPU, without a GPU: NAME.gpu.hlo.

    pip install --target DIR --no-deps jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2
    python dump_gpu.py DIR          rewrites dumped/*.gpu.hlo; or those of the programs that are named behind DIR

The compiler of the CUDA plug-in runs without libcuda when it is given a description of the device; nothing is tuned,
and programs that need cuDNN or ptxas are left out. Results are those of NAME.io."""
import os
import sys

os.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level=0'
import dump  # noqa: E402
import jax  # noqa: E402
import jaxlib._jax as J  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from jax.sharding import SingleDeviceSharding  # noqa: E402

H100 = """gpu_device_info {
  runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0" driver_version: "13.0.0"
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def device(plugin):
    J.load_pjrt_plugin('cuda', os.path.join(plugin, 'jax_plugins/xla_cuda13/xla_cuda_plugin.so'), None)
    J.initialize_pjrt_plugin('cuda')
    shape = dict(target_config=H100, topology='1x1x1')
    return topologies.TopologyDescription(
        J.get_default_c_api_topology('cuda', '1x1x1', shape)._make_compile_only_devices()).devices[0]


def main():
    where = SingleDeviceSharding(device(sys.argv[1]))
    wanted = sys.argv[2:]
    dump.programs_library.ATTENTION[0] = 'cudnn'
    for name, how in dump.programs.PROGRAMS.items():
        if wanted and name not in wanted:
            continue
        options = {'xla_gpu_enable_triton_gemm': False} if how.get('libraries') else {}
        with jax.enable_x64('x64' in how):
            f, args = how['make']()
            if how['make'].__module__ == 'programs_sharded' or how.get('large') or how.get('traced_only'):
                continue
            try:
                traced = jax.jit(f, keep_unused=True, in_shardings=where, out_shardings=where).trace(*args)
                text = traced.lower(lowering_platforms=('cuda',)).compile(compiler_options=options).as_text()
                if len(text) < 24000:
                    dump.write(name + '.gpu.hlo', dump.clean(text))
            except Exception as e:
                print('%s: %s' % (name, str(e)[:200]), file=sys.stderr)


main()
