"""What tools/gpu_report makes of the folder that gpu_check leaves on a machine with a GPU."""
