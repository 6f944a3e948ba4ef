"""What each part of the way from video to states buys."""
